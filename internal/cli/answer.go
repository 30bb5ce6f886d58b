package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/driver"
)

// answerFlags say what form the result in --happened has.
type answerFlags struct {
	codec       string
	status      int
	contentType string
}

func (a *answerFlags) flags(cmd *cobra.Command) {
	p := cmd.Flags()
	p.StringVar(&a.codec, "codec", "json", "of a program's result in --happened: json or raw")
	p.IntVar(&a.status, "http-status", http.StatusOK, "of an HTTP answer in --happened: 200 to 399")
	p.StringVar(&a.contentType, "content-type", "", "of an HTTP answer in --happened; empty: application/json where it is JSON, else application/octet-stream")
}

func (a *answerFlags) check(cmd *cobra.Command) error {
	set := cmd.Flags().Changed
	overHTTP := set("http-status") || set("content-type")
	switch {
	case !set("happened") && (overHTTP || set("codec")):
		return usage("--codec, --http-status and --content-type describe the result in --happened")
	case a.codec != "json" && a.codec != "raw":
		return usage("--codec %q: use json or raw; an HTTP answer is described by --http-status and --content-type", a.codec)
	case overHTTP && set("codec"):
		return usage("--codec is for the result of a program, --http-status and --content-type for an HTTP answer: use one kind")
	case a.status < 200 || a.status > 399:
		return usage("--http-status %d: use 200 to 399, for it happened; if the answer is no, say --final", a.status)
	}
	if a.contentType != "" {
		if _, _, err := mime.ParseMediaType(a.contentType); err != nil || clean(a.contentType) != a.contentType {
			return usage("--content-type %q is none: write it like application/json", a.contentType)
		}
	}
	return nil
}

// result gives data the form in which a duplicate can get it. What that would not be able to read is refused here.
func (a *answerFlags) result(cmd *cobra.Command, s *store, rec *driver.Record, data []byte) (driver.Result, error) {
	set := cmd.Flags().Changed
	codec, err := codecOf(cmd.Context(), s, rec)
	if err != nil {
		return driver.Result{}, err
	}
	overHTTP := set("http-status") || set("content-type")
	switch {
	case codec == "" && overHTTP:
		codec = httpCodec
	case codec == "":
		codec = a.codec
	case codec == httpCodec && set("codec"):
		return driver.Result{}, usage("operation %s has HTTP answers, not values of a codec: use --http-status and --content-type", rec.Operation)
	case codec != httpCodec && overHTTP:
		return driver.Result{}, usage("operation %s has results of codec %s, not HTTP answers: leave out --http-status and --content-type", rec.Operation, codec)
	case codec != httpCodec && set("codec") && codec != a.codec:
		return driver.Result{}, usage("operation %s has results of codec %s: with --codec %s a duplicate could not read this one", rec.Operation, codec, a.codec)
	}
	switch codec {
	case httpCodec:
		return a.overHTTP(cmd, data)
	case "json":
		if !json.Valid(data) {
			return driver.Result{}, usage("what --happened names is not one JSON value, so no duplicate could read it: correct it, or say --codec raw if the operation keeps bytes")
		}
	case "raw":
	default:
		return driver.Result{}, fmt.Errorf("operation %s has results of codec %s, which this command can't write: settle it from the program", rec.Operation, codec)
	}
	return driver.Result{Codec: codec, Data: data}, nil
}

// codecOf finds out in which codec an attempt would have left its result: as its operation's other attempts did, or as
// what is known of this one says. Empty: there is nothing to tell.
func codecOf(ctx context.Context, s *store, rec *driver.Record) (codec string, err error) {
	err = walk(ctx, s, driver.All, func(snap *driver.Snapshot) bool {
		if r := &snap.Record; r.Operation == rec.Operation && r.Resolution == "" {
			codec = r.Result.Codec
		}
		return codec == ""
	})
	if codec == "" && (rec.Operation == httpOperation || strings.HasPrefix(rec.Error, "HTTP status ")) {
		codec = httpCodec
	}
	return codec, err
}

// httpCodec is the codec of package oncehttp: the bytes are the body, the metadata the status, then a header a line.
const httpCodec = "http"

func (a *answerFlags) overHTTP(cmd *cobra.Command, data []byte) (driver.Result, error) {
	meta := strconv.Itoa(a.status)
	kind := a.contentType
	switch {
	case len(data) == 0:
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		return driver.Result{}, usage("an HTTP answer %d has no body, and what --happened names has %d bytes: give an empty file, or another --http-status", a.status, len(data))
	case kind == "" && json.Valid(data):
		kind = "application/json"
	case kind == "":
		kind = "application/octet-stream"
	}
	if kind != "" {
		meta += "\nContent-Type:" + kind
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "a duplicate over HTTP gets %d %s, %d bytes\n", a.status, kind, len(data))
	return driver.Result{Codec: httpCodec, Meta: []byte(meta), Data: data}, nil
}
