// Command raw sends the same requests as a benchmark's Python processes do, and nothing else.
//
// It is the bare generator by which the API server's own limit is measured: it reads a plan from
// standard input, carries the plan's steps out for each job in turn on so many connections, and
// prints what it took. It knows nothing of jobs: bodies and paths come with the plan, made by the
// code that makes the real ones.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	plan, err := readPlan(os.Stdin)
	if err != nil {
		fail(err)
	}
	report, err := run(plan)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
