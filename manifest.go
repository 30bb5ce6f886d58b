package onceward

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/driver"
)

// Manifest is an operation's effects as people and programs read them. It encodes to JSON; String is a table, Markdown
// another one.
type Manifest struct {
	Operation     string           `json:"operation"`
	OnLapse       string           `json:"on_lapse"`                 // REPEAT or UNKNOWN, of an attempt that dies before its first step
	RepeatableFor string           `json:"repeatable_for,omitempty"` // empty: without end
	Why           string           `json:"why"`
	Effects       []ManifestEffect `json:"effects"`
}

// ManifestEffect is a line of a Manifest.
type ManifestEffect struct {
	Name        string `json:"name"`
	Way         string `json:"way"`
	HonouredFor string `json:"honoured_for,omitempty"`
	Bearable    bool   `json:"bearable,omitempty"`
	OnLapse     string `json:"on_lapse"` // what an attempt that died in it comes to, in words
}

// Manifest returns what the operation declares, with what follows from it when an attempt dies.
func (op *Op) Manifest() Manifest {
	p := &op.policy
	l := p.onLapse(nil, time.Time{})
	m := Manifest{Operation: p.Name, OnLapse: driver.LapseUnknown.String(), Why: l.why, Effects: []ManifestEffect{}}
	if l.repeat {
		m.OnLapse = driver.LapseRepeat.String()
		if d := p.Effects.keyedFor(); d > 0 {
			m.RepeatableFor = d.String()
		}
	}
	for i := range p.Effects {
		e := &p.Effects[i]
		line := ManifestEffect{Name: e.Name, Way: e.Way.String(), Bearable: e.Bearable, OnLapse: e.words(p)}
		if e.HonouredFor > 0 {
			line.HonouredFor = e.HonouredFor.String()
		}
		m.Effects = append(m.Effects, line)
	}
	return m
}

// words say what comes of an attempt that died in the effect.
func (e *Effect) words(o *Operation) string {
	switch {
	case e.Bearable:
		return "run again: twice can be borne"
	case e.Way == BySameTx:
		return "run again: it took effect with its record, or not at all"
	case e.Way == ByOutbox:
		return "run again: its message committed with the business, or not at all"
	case e.Way == Natural:
		return "run again: repeating it changes nothing"
	case e.HonouredFor > 0:
		return fmt.Sprintf("called again with the same key within %v, then unknown", e.HonouredFor)
	case e.Resolve != nil, o.Resolve != nil:
		return "unknown until the other side was asked"
	}
	return "unknown until somebody resolves it"
}

// head is what stands above the table.
func (m Manifest) head() string {
	fate := "an attempt that dies is unknown"
	if m.OnLapse == driver.LapseRepeat.String() {
		fate = "an attempt that dies is run again"
		if m.RepeatableFor != "" {
			fate += " within " + m.RepeatableFor
		}
	}
	return fmt.Sprintf("operation %s: %s, because %s", m.Operation, fate, m.Why)
}

func (m Manifest) rows() [][]string {
	rows := [][]string{{"effect", "kept to once by", "key honoured for", "twice", "when an attempt dies in it"}}
	for i := range m.Effects {
		e := &m.Effects[i]
		twice, honoured := "can't be borne", e.HonouredFor
		if e.Bearable {
			twice = "can be borne"
		}
		if honoured == "" {
			honoured = "-"
		}
		rows = append(rows, []string{e.Name, e.Way, honoured, twice, e.OnLapse})
	}
	return rows
}

// String returns the manifest as a table for a terminal.
func (m Manifest) String() string {
	var b strings.Builder
	b.WriteString(m.head() + "\n")
	if len(m.Effects) == 0 {
		return b.String()
	}
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, row := range m.rows() {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // into memory
	return b.String()
}

// Markdown returns the manifest as a Markdown table.
func (m Manifest) Markdown() string {
	var b strings.Builder
	b.WriteString(m.head() + "\n")
	for i, row := range m.rows() {
		if len(m.Effects) == 0 {
			break
		}
		switch i {
		case 0:
			b.WriteString("\n| " + strings.Join(row, " | ") + " |\n" + strings.Repeat("|---", len(row)) + "|\n")
		default:
			b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
	}
	return b.String()
}
