package prom_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/key"
	"github.com/onceward/onceward/observe/prom"
	"github.com/onceward/onceward/store/memstore"
)

// TestUnclaimedIsCounted beside the decisions, without a time, which it has none of.
func TestUnclaimedIsCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m, err := prom.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	g, err := onceward.New(memstore.New(nil), &onceward.Options{SingleTenant: true, Observer: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Define(onceward.Operation{Name: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"none": 3, "key_invalid": 2, "ignored": 1}
	for word, n := range want {
		for range int(n) {
			op.Unclaimed(word, errors.New("text that is in no label"))
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, sample := range f.GetMetric() {
			switch f.GetName() {
			case "onceward_requests_total":
				labels := map[string]string{}
				for _, l := range sample.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if labels["operation"] != "pay" || len(labels) != 2 {
					t.Errorf("labels %v", labels)
				}
				got[labels["outcome"]] = sample.GetCounter().GetValue()
			case "onceward_decision_duration_seconds", "onceward_events_total":
				t.Errorf("%s counted it too: %v", f.GetName(), sample)
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for word, n := range want {
		if got[word] != n {
			t.Errorf("%s: %v, want %v", word, got[word], n)
		}
	}
}

// TestResolvedIsCounted once for each answer that settled a record, and for no other.
func TestResolvedIsCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m, err := prom.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	mem := memstore.New(nil)
	g, err := onceward.New(mem, &onceward.Options{SingleTenant: true, Observer: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]onceward.Answer{
		"yes": onceward.Happened("paid"), "yes-2": onceward.Happened("paid"), "not": onceward.DidNotHappen(),
		"no": onceward.AnsweredNo("no funds"), "perhaps": onceward.StillUnknown(),
	}
	op, err := g.Define(onceward.Operation{Name: "pay", Resolve: func(_ context.Context, q onceward.Question) (onceward.Answer, error) {
		return answers[q.Key.Reveal()], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for text := range answers {
		k, err := key.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = onceward.Do(t.Context(), op, onceward.Call{Key: k}, func(context.Context) (string, error) {
			return "", onceward.Unknown(errors.New("no reply"))
		})
		if !errors.Is(err, onceward.ErrUnknown) {
			t.Fatal(err)
		}
	}
	page, err := mem.Scan(t.Context(), driver.Scan{Limit: 10, Which: driver.Unclear})
	if err != nil || len(page.Snapshots) != len(answers) {
		t.Fatalf("%d are unknown, %v", len(page.Snapshots), err)
	}
	for _, s := range page.Snapshots {
		mem.Shift(s.Record.ID, time.Hour)
		snap, err := mem.Get(t.Context(), s.Record.ID)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second finds it settled, or asks in vain
			if _, _, err := g.Resolve(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, sample := range f.GetMetric() {
			switch f.GetName() {
			case "onceward_resolved_total":
				labels := map[string]string{}
				for _, l := range sample.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if len(labels) != 2 {
					t.Errorf("labels %v", labels)
				}
				got[labels["operation"]+" "+labels["answer"]] = sample.GetCounter().GetValue()
			case "onceward_events_total":
				t.Errorf("counted twice: %v", sample)
			}
		}
	}
	if want := map[string]float64{"pay happened": 2, "pay did_not_happen": 1, "pay answered_no": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
