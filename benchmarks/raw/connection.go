package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	rfc3339Millis  = "2006-01-02T15:04:05.000Z"
	requestTimeout = 60 * time.Second
)

var versionKey = []byte(`"resourceVersion":"`)

type prepared struct {
	step  Step
	token string
	path  template
	body  template
}

// connection is one TCP connection, HTTP/1.1 as the Python processes speak it.
type connection struct {
	url       string
	client    *http.Client
	steps     []prepared
	latencies [][]time.Duration
	failures  map[string]int
	completed int
	body      []byte
	answer    bytes.Buffer
}

func trust(caFile string) (*tls.Config, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func connect(plan *Plan, identity Identity, config *tls.Config) (*connection, error) {
	transport := &http.Transport{
		TLSClientConfig:     config.Clone(),
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
		DisableCompression:  true,
	}
	made := &connection{
		url:      plan.URL,
		client:   &http.Client{Transport: transport, Timeout: requestTimeout},
		steps:    plan.stepsFor(identity),
		failures: map[string]int{},
	}
	made.latencies = make([][]time.Duration, len(made.steps))
	// The handshake is over before anything is measured.
	_, _, err := made.send("GET", "/version", "", made.steps[0])
	return made, err
}

// do carries out all steps for one job; a step that fails ends the job.
func (c *connection) do(name string) {
	job := &values{name: name, claim: fmt.Sprintf("%016x", rand.Uint64())}
	for i, step := range c.steps {
		job.now = time.Now().UTC().Format(rfc3339Millis)
		c.body = step.body.fill(c.body[:0], job)
		path := string(step.path.fill(nil, job))
		sent := time.Now()
		code, answer, err := c.send(step.step.Method, path, string(c.body), step)
		c.latencies[i] = append(c.latencies[i], time.Since(sent))
		if err != nil || code >= 400 {
			c.failures[describe(step.step.Name, code, err, answer)]++
			return
		}
		job.version = versionIn(answer)
	}
	c.completed++
}

func (c *connection) send(method, path, body string, step prepared) (int, []byte, error) {
	request, err := http.NewRequest(method, c.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", step.token)
	request.Header.Set("Accept", step.step.Accept)
	request.Header.Set("Content-Type", step.step.ContentType)
	request.Header.Set("User-Agent", step.step.UserAgent)
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	c.answer.Reset()
	_, err = io.Copy(&c.answer, response.Body)
	return response.StatusCode, c.answer.Bytes(), err
}

func versionIn(answer []byte) string {
	at := bytes.Index(answer, versionKey)
	if at < 0 {
		return ""
	}
	rest := answer[at+len(versionKey):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return ""
	}
	return string(rest[:end])
}

func describe(step string, code int, err error, answer []byte) string {
	if err != nil {
		return step + ": " + err.Error()
	}
	text := string(answer)
	if len(text) > 400 {
		text = text[:400]
	}
	return step + " " + strconv.Itoa(code) + ": " + text
}
