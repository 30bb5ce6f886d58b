package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

func newRecordsShow(f *recordFlags) *cobra.Command {
	var p pick
	var result, reveal bool
	cmd := &cobra.Command{
		Use:   "show (KEY | key:DIGEST | --id HEX)",
		Short: "Show one record: by its key as sent with operation and scope, as list prints it, or by its id",
		Example: "  onceward records show order-42 --operation pay --caller shop-7\n" +
			"  onceward records show key:0123456789ab\n" +
			"  onceward records show order-42 --result > first-answer.json",
		Args: p.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open(cmd)
			if err != nil {
				return err
			}
			defer func() { _ = s.close() }()
			snap, err := p.find(cmd, s, args)
			if err != nil {
				return err
			}
			r := &snap.Record
			switch {
			case result && r.Result.Data == nil:
				return &exitError{exitNotFound, fmt.Errorf("the record is %s and keeps no result", statusOf(r))}
			case result:
				_, err = cmd.OutOrStdout().Write(r.Result.Data)
				return err
			}
			v := viewOf(&snap)
			if reveal {
				v.KeyText = r.Key
			}
			if f.output != "table" {
				return f.print(cmd.OutOrStdout(), []recordView{v})
			}
			return v.page(cmd.OutOrStdout())
		},
	}
	p.flags(cmd)
	cmd.Flags().BoolVar(&result, "result", false, "print the bytes of the kept answer, and nothing else")
	cmd.Flags().BoolVar(&reveal, "reveal", false, "print the key in clear too; it can be a secret")
	return cmd
}

// recordView is a record as people and programs see it. The key is its digest: it can be a secret.
type recordView struct {
	ID              string     `json:"id"`
	Key             string     `json:"key"`
	KeyText         string     `json:"key_text,omitempty"`
	Operation       string     `json:"operation"`
	Namespace       string     `json:"namespace,omitempty"`
	Tenant          string     `json:"tenant,omitempty"`
	Caller          string     `json:"caller,omitempty"`
	Status          string     `json:"status"`
	Failure         string     `json:"failure,omitempty"`
	Attempt         int        `json:"attempt"`
	Died            int        `json:"died"`
	MaxAttempts     int        `json:"max_attempts"`
	Fence           int64      `json:"fence"`
	Owner           string     `json:"owner,omitempty"` // its first digits: enough to tell two apart
	OnLapse         string     `json:"on_lapse"`
	RepeatableUntil *time.Time `json:"repeatable_until,omitempty"`
	Lease           string     `json:"lease"`
	LeaseUntil      *time.Time `json:"lease_until,omitempty"`
	Deadline        *time.Time `json:"deadline_at,omitempty"`
	Retention       string     `json:"retention"`
	Created         time.Time  `json:"created_at"`
	Updated         time.Time  `json:"updated_at"`
	Completed       *time.Time `json:"completed_at,omitempty"`
	Expires         *time.Time `json:"expires_at,omitempty"`
	Expired         bool       `json:"expired,omitempty"` // it no longer answers; the row stays until a purge
	Codec           string     `json:"result_codec,omitempty"`
	Meta            string     `json:"result_meta,omitempty"`
	Bytes           int        `json:"result_bytes,omitempty"` // of show; list does not read results
	Tombstone       bool       `json:"tombstone,omitempty"`
	RequestBytes    int        `json:"request_bytes,omitempty"`
	Error           string     `json:"error,omitempty"`
	Resolution      string     `json:"resolution,omitempty"`
	Steps           []stepView `json:"steps,omitempty"`

	record *driver.Record
}

// stepView is a step of the work.
type stepView struct {
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Attempt int        `json:"attempt"` // that called it last
	Begun   *time.Time `json:"begun_at,omitempty"`
	Bytes   int        `json:"result_bytes,omitempty"`
	Error   string     `json:"error,omitempty"`
}

func viewOf(snap *driver.Snapshot) recordView {
	r := snap.Record
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	owner := ""
	if !r.Owner.IsZero() {
		owner = hex.EncodeToString(r.Owner[:4])
	}
	var steps []stepView
	for i := range r.Steps {
		st := &r.Steps[i]
		steps = append(steps, stepView{st.Name, st.State.String(), st.Attempt, at(st.BegunAt), len(st.Result.Data), st.Error})
	}
	return recordView{
		Steps: steps,
		ID:    r.ID.String(), Key: digestOf(r.Key), Operation: r.Operation,
		Namespace: r.Scope.Namespace, Tenant: r.Scope.Tenant, Caller: r.Scope.Caller,
		Status: r.Status.String(), Failure: r.Failure.String(), Attempt: r.Attempt, Died: r.Died, MaxAttempts: r.MaxAttempts,
		Fence: r.Fence, Owner: owner, OnLapse: r.OnLapse.String(), RepeatableUntil: at(r.RepeatableUntil),
		Lease: r.Lease.String(), LeaseUntil: at(r.LeaseUntil), Deadline: at(r.DeadlineAt), Retention: r.Retention.String(),
		Created: r.CreatedAt.UTC(), Updated: r.UpdatedAt.UTC(), Completed: at(r.CompletedAt), Expires: at(r.ExpiresAt),
		Expired: state.Expired(&r, snap.Now),
		Codec:   r.Result.Codec, Meta: string(r.Result.Meta), Bytes: len(r.Result.Data), Tombstone: r.Result.Tombstone,
		RequestBytes: len(r.Request), Error: r.Error, Resolution: r.Resolution, record: &r,
	}
}

// page prints all fields, one below the other. What is empty is left out.
func (v *recordView) page(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, clean(value))
		}
	}
	at := func(name string, t *time.Time) {
		if t != nil {
			line(name, t.Format("2006-01-02 15:04:05.000 UTC"))
		}
	}
	line("id", v.ID)
	line("key", v.Key)
	line("key in clear", v.KeyText)
	line("operation", v.Operation)
	line("namespace", v.Namespace)
	line("tenant", v.Tenant)
	line("caller", v.Caller)
	line("status", statusOf(v.record))
	most := fmt.Sprint(v.MaxAttempts)
	if v.MaxAttempts == 0 {
		most = "any number"
	}
	line("attempt", fmt.Sprintf("%d, %d died of at most %s", v.Attempt, v.Died, most))
	line("fence", fmt.Sprint(v.Fence))
	line("owner", v.Owner)
	line("lease", v.Lease)
	at("lease until", v.LeaseUntil)
	at("deadline", v.Deadline)
	line("on lapse", strings.ToLower(v.OnLapse))
	at("repeatable until", v.RepeatableUntil)
	at("created", &v.Created)
	at("updated", &v.Updated)
	at("completed", v.Completed)
	line("retention", v.Retention)
	at("expires", v.Expires)
	if v.Expired {
		line("expired", "it no longer answers")
	}
	line("codec", v.Codec)
	line("meta", strings.ReplaceAll(v.Meta, "\n", "; "))
	switch {
	case v.Tombstone:
		line("result", "not kept")
	case v.record.Result.Data != nil:
		line("result", fmt.Sprintf("%d bytes (--result prints them)", v.Bytes))
	}
	if v.RequestBytes > 0 {
		line("request", fmt.Sprintf("%d bytes", v.RequestBytes))
	}
	for i := range v.Steps {
		st := &v.Steps[i]
		line("step "+st.Name, st.words())
	}
	line("error", v.Error)
	line("resolution", v.Resolution)
	return tw.Flush()
}

// words say how far a step is.
func (s *stepView) words() string {
	text := fmt.Sprintf("%s by attempt %d", strings.ToLower(s.State), s.Attempt)
	if s.Begun != nil {
		text += s.Begun.Format(", first called 2006-01-02 15:04:05.000 UTC")
	}
	switch {
	case s.Error != "":
		return text + ": " + s.Error
	case s.State == driver.StepDone.String():
		return fmt.Sprintf("%s, %d bytes", text, s.Bytes)
	}
	return text
}
