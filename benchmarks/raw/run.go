package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const mostFailuresShown = 5

// Latency is of one step, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Report is what a run took. Started and Ended are Unix times.
type Report struct {
	Completed  int                `json:"completed"`
	Failures   map[string]int     `json:"failures"`
	Started    float64            `json:"started"`
	Ended      float64            `json:"ended"`
	Seconds    float64            `json:"seconds"`
	CPUSeconds float64            `json:"cpuSeconds"`
	Latencies  map[string]Latency `json:"latencies"`
}

func run(plan *Plan) (*Report, error) {
	connections, err := connectAll(plan)
	if err != nil {
		return nil, err
	}
	before, started := cpuSeconds(), time.Now()
	carryOut(plan, connections)
	ended := time.Now()
	report := &Report{
		Failures:   map[string]int{},
		Started:    unix(started),
		Ended:      unix(ended),
		Seconds:    ended.Sub(started).Seconds(),
		CPUSeconds: cpuSeconds() - before,
		Latencies:  map[string]Latency{},
	}
	for _, connection := range connections {
		report.Completed += connection.completed
		for what, count := range connection.failures {
			if _, known := report.Failures[what]; known || len(report.Failures) < mostFailuresShown {
				report.Failures[what] += count
			}
		}
	}
	for i, step := range plan.Steps {
		report.Latencies[step.Name] = latencyOf(connections, i)
	}
	return report, nil
}

func connectAll(plan *Plan) ([]*connection, error) {
	config, err := trust(plan.CAFile)
	if err != nil {
		return nil, err
	}
	connections := make([]*connection, plan.Connections)
	for i := range connections {
		identity := plan.Identities[i%len(plan.Identities)]
		if connections[i], err = connect(plan, identity, config); err != nil {
			return nil, err
		}
	}
	return connections, nil
}

func carryOut(plan *Plan, connections []*connection) {
	var next atomic.Int64
	var all sync.WaitGroup
	for _, connection := range connections {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				number := int(next.Add(1)) - 1
				if number >= plan.Count {
					return
				}
				connection.do(fmt.Sprintf("%s%d", plan.Prefix, plan.First+number))
			}
		}()
	}
	all.Wait()
}

func latencyOf(connections []*connection, step int) Latency {
	var all []time.Duration
	for _, connection := range connections {
		all = append(all, connection.latencies[step]...)
	}
	slices.Sort(all)
	return Latency{quantile(all, 0.50), quantile(all, 0.90), quantile(all, 0.99)}
}

// quantile returns milliseconds, by the nearest rank.
func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := min(len(sorted)-1, int(share*float64(len(sorted))))
	return float64(sorted[rank]) / float64(time.Millisecond)
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func seconds(value syscall.Timeval) float64 {
	return float64(value.Sec) + float64(value.Usec)/1e6
}

func unix(moment time.Time) float64 {
	return float64(moment.UnixNano()) / 1e9
}
