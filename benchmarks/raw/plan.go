package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Step is one request per job. Marks in path and body are filled in for each.
type Step struct {
	Name        string `json:"name"`
	Method      string `json:"method"`
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	UserAgent   string `json:"userAgent"`
	Accept      string `json:"accept"`
	Token       string `json:"token"` // empty: that of the connection's identity
	Body        string `json:"body"`
}

// Identity is whom a connection speaks for; Marks are filled in once.
type Identity struct {
	Token string            `json:"token"`
	Marks map[string]string `json:"marks"`
}

// Plan is all there is to do.
type Plan struct {
	URL         string     `json:"url"`
	CAFile      string     `json:"caFile"`
	Connections int        `json:"connections"`
	Prefix      string     `json:"prefix"`
	First       int        `json:"first"`
	Count       int        `json:"count"`
	Identities  []Identity `json:"identities"`
	Steps       []Step     `json:"steps"`
}

func readPlan(source io.Reader) (*Plan, error) {
	var plan Plan
	decoder := json.NewDecoder(source)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&plan); err != nil {
		return nil, fmt.Errorf("the plan on standard input: %w", err)
	}
	if plan.Connections < 1 || plan.Count < 1 || len(plan.Steps) == 0 {
		return nil, fmt.Errorf("the plan needs connections, a count and steps")
	}
	if len(plan.Identities) == 0 {
		plan.Identities = []Identity{{}}
	}
	return &plan, nil
}

// stepsFor returns the steps with all that is the same for every job of an identity.
func (plan *Plan) stepsFor(identity Identity) []prepared {
	steps := make([]prepared, len(plan.Steps))
	for i, step := range plan.Steps {
		token := step.Token
		if token == "" {
			token = identity.Token
		}
		steps[i] = prepared{
			step:  step,
			token: "Bearer " + token,
			path:  newTemplate(fillMarks(step.Path, identity.Marks)),
			body:  newTemplate(fillMarks(step.Body, identity.Marks)),
		}
	}
	return steps
}

func fillMarks(text string, marks map[string]string) string {
	for mark, value := range marks {
		text = strings.ReplaceAll(text, mark, value)
	}
	return text
}
