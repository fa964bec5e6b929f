package main

import "strings"

// What differs from job to job.
const (
	markName    = "@NAME@"
	markVersion = "@VERSION@"
	markClaim   = "@CLAIM@"
	markNow     = "@NOW@"
)

var marks = []string{markName, markVersion, markClaim, markNow}

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
	}
	return v.now
}
