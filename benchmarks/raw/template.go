package main

import (
	"strconv"
	"strings"
)

// What differs from job to job.
const (
	markName    = "@NAME@"
	markVersion = "@VERSION@"
	markClaim   = "@CLAIM@"
	markNow     = "@NOW@"
	markShard   = "@SHARD@"
)

var marks = []string{markName, markVersion, markClaim, markNow, markShard}

type values struct{ name, version, claim, now string }

// template is a text cut at its marks: literal, mark, literal, … so that filling costs one copy.
type template struct {
	literals []string
	marks    []string
}

func newTemplate(text string) template {
	var cut template
	for {
		at, found := len(text), ""
		for _, mark := range marks {
			if i := strings.Index(text, mark); i >= 0 && i < at {
				at, found = i, mark
			}
		}
		cut.literals = append(cut.literals, text[:at])
		if found == "" {
			return cut
		}
		cut.marks = append(cut.marks, found)
		text = text[at+len(found):]
	}
}

func (t template) fill(into []byte, with *values) []byte {
	for i, literal := range t.literals {
		into = append(into, literal...)
		if i < len(t.marks) {
			into = append(into, with.of(t.marks[i])...)
		}
	}
	return into
}

func (v *values) of(mark string) string {
	switch mark {
	case markName:
		return v.name
	case markVersion:
		return v.version
	case markClaim:
		return v.claim
	case markShard:
		return shardOf(v.name)
	}
	return v.now
}

// shardOf is `asyncjob.shards.shard_of`, so that workers share these jobs out as they do others.
func shardOf(name string) string {
	const characters = "-.0123456789abcdefghijklmnopqrstuvwxyz"
	sum := 0
	for i := range len(name) {
		sum += (strings.IndexByte(characters, name[i]) + 1) * (i*i + 7*i + 11)
	}
	return strconv.Itoa(sum % 8191 % 64)
}
