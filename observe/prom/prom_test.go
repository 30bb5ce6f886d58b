package prom_test

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onceward/onceward"
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
