package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// The headers of a question, beside Idempotency-Key. Of the scope only what it has; it is percent-encoded, a blank as %20.
const (
	HeaderOperation = "Onceward-Operation"
	HeaderAttempt   = "Onceward-Attempt"
	HeaderBegun     = "Onceward-Begun" // RFC 3339, by the store's clock
	HeaderTenant    = "Onceward-Tenant"
	HeaderCaller    = "Onceward-Caller"
)

// Defaults of a question.
const (
	DefaultMaxAnswer     = 256 << 10 // bytes, as oncehttp keeps of a result
	DefaultAnswerTimeout = 10 * time.Second
)

// ResolveOptions of ResolveAt. Zero values are the defaults.
type ResolveOptions struct {
	MaxAnswer int           // bounds the body of an answer
	Timeout   time.Duration // bounds one question, its answer's body included; who asks may allow less
}

// CheckResolveURL says why a URL can't be asked. It does not quote it, which may have a password.
func CheckResolveURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Contains(text, "#") {
		return nil, errors.New("resolve: use a URL such as http://127.0.0.1:9000/outcome, without a user or a fragment")
	}
	return u, nil
}

// ResolveAt returns a resolver that asks by GET at a URL what became of a request: once, without a look at redirects. The
// answer's Onceward-Outcome decides: done and final are kept with its status, headers and body as what duplicates get,
// not-done frees the key, unknown leaves it as it is. An answer without that header, whatever its status, says nothing, as
// nobody says it who does not know of it; nor does a 5xx with one, which may be about the question itself. A nil o has the
// defaults.
func ResolveAt(u *url.URL, o *ResolveOptions) onceward.Resolver {
	var opts ResolveOptions
	if o != nil {
		opts = *o
	}
	if opts.MaxAnswer <= 0 {
		opts.MaxAnswer = DefaultMaxAnswer
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultAnswerTimeout
	}
	target, host := u.String(), u.Host
	client := &http.Client{
		Transport:     newOnceTransport().fresh, // on a kept connection that dies net/http would ask again by itself
		Timeout:       opts.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, q onceward.Question) (onceward.Answer, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
		if err != nil {
			return onceward.Answer{}, err
		}
		req.Header.Set("Idempotency-Key", q.Key.HeaderValue())
		req.Header.Set(HeaderOperation, q.Operation)
		req.Header.Set(HeaderAttempt, fmt.Sprint(q.Attempt))
		req.Header.Set(HeaderBegun, q.Begun.UTC().Format(time.RFC3339Nano))
		for name, part := range map[string]string{HeaderTenant: q.Scope.Tenant, HeaderCaller: q.Scope.Caller} {
			if part != "" {
				req.Header.Set(name, strings.ReplaceAll(url.QueryEscape(part), "+", "%20")) // a plus means two things
			}
		}
		resp, err := client.Do(req)
		if err != nil {
			var with *url.Error // the query, where a token may be
			if errors.As(err, &with) {
				err = with.Err
			}
			return onceward.Answer{}, fmt.Errorf("gateway: no answer from %s: %w", host, err)
		}
		defer func() { _ = resp.Body.Close() }()
		return answerOf(resp, opts.MaxAnswer)
	}
}

var errNoWord = errors.New("it does not say " + oncehttp.HeaderOutcome)

// aboutTheQuestion reports whether a status may be about the question itself, as one of a rate limiter or a gate is: what comes
// with it was not necessarily said of the request that is asked about.
func aboutTheQuestion(status int) bool {
	switch status {
	case 401, 403, 407, 408, 421, 425, 429:
		return true
	}
	return status >= 500
}

// answerOf reads what an answer says.
func answerOf(resp *http.Response, most int) (a onceward.Answer, err error) {
	said := strings.Join(resp.Header[oncehttp.HeaderOutcome], ", ") // two are no word
	if said == "" {
		return a, fmt.Errorf("gateway: the answer has HTTP status %d: %w", resp.StatusCode, errNoWord)
	}
	outcome, err := oncehttp.ParseOutcome(said)
	if err != nil {
		return a, err
	}
	if outcome != oncehttp.Unknown && aboutTheQuestion(resp.StatusCode) {
		return a, fmt.Errorf("gateway: the answer has HTTP status %d, which may be about the question: its %s does not count", resp.StatusCode, oncehttp.HeaderOutcome)
	}
	switch outcome {
	case oncehttp.NotDone:
		return onceward.DidNotHappen(), nil
	case oncehttp.Unknown, oncehttp.ByStatus:
		return onceward.StillUnknown(), nil
	case oncehttp.Done, oncehttp.Final:
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return a, fmt.Errorf("gateway: the answer broke off: %w", err)
	}
	if len(body) > most {
		return a, fmt.Errorf("gateway: the answer is longer than %d bytes", most)
	}
	reason := resp.Header.Get(oncehttp.HeaderReason)
	if reason == "" {
		reason = fmt.Sprintf("HTTP status %d", resp.StatusCode)
	}
	for _, line := range resp.Header["Connection"] { // what it names is of this hop, as it is behind the proxy
		for name := range strings.SplitSeq(line, ",") {
			resp.Header.Del(strings.TrimSpace(name))
		}
	}
	result, err := oncehttp.NewResult(resp.StatusCode, resp.Header, body)
	if err != nil {
		return a, err
	}
	if outcome == oncehttp.Done {
		return onceward.Happened(result), nil
	}
	return onceward.AnsweredNoWith(reason, result), nil
}
