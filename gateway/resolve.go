package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/oncehttp"
)

// The headers of a question, beside Idempotency-Key. Of the scope only what it has; it is percent-encoded.
const (
	HeaderOperation = "Onceward-Operation"
	HeaderAttempt   = "Onceward-Attempt"
	HeaderBegun     = "Onceward-Begun" // RFC 3339, by the store's clock
	HeaderTenant    = "Onceward-Tenant"
	HeaderCaller    = "Onceward-Caller"
)

// DefaultMaxAnswer bounds the body of an answer to a question, as oncehttp does with results.
const DefaultMaxAnswer = 256 << 10

// CheckResolveURL says why a URL can't be asked.
func CheckResolveURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("resolve %q: use a URL such as http://127.0.0.1:9000/outcome, without a user or a fragment", text)
	}
	return u, nil
}

// ResolveAt returns a resolver that asks by GET at a URL what became of a request. The answer's Onceward-Outcome decides:
// done and final are kept with its status, headers and body as what duplicates get, not-done frees the key, unknown leaves it
// as it is. An answer without that header, whatever its status, says nothing, as nobody says it who does not know of it.
// maxAnswer bounds the body; zero: DefaultMaxAnswer.
func ResolveAt(u *url.URL, maxAnswer int) onceward.Resolver {
	if maxAnswer == 0 {
		maxAnswer = DefaultMaxAnswer
	}
	client := &http.Client{
		Transport:     newOnceTransport().kept,
		Timeout:       30 * time.Second, // a bound of last resort: who asks has one of their own
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, q onceward.Question) (onceward.Answer, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return onceward.Answer{}, err
		}
		req.Header.Set("Idempotency-Key", q.Key.HeaderValue())
		req.Header.Set(HeaderOperation, q.Operation)
		req.Header.Set(HeaderAttempt, fmt.Sprint(q.Attempt))
		req.Header.Set(HeaderBegun, q.Begun.UTC().Format(time.RFC3339Nano))
		for name, part := range map[string]string{HeaderTenant: q.Scope.Tenant, HeaderCaller: q.Scope.Caller} {
			if part != "" {
				req.Header.Set(name, url.QueryEscape(part))
			}
		}
		resp, err := client.Do(req)
		if err != nil {
			return onceward.Answer{}, err
		}
		defer func() { _ = resp.Body.Close() }()
		return answerOf(resp, maxAnswer)
	}
}

var errNoWord = errors.New("it does not say " + oncehttp.HeaderOutcome)

// answerOf reads what an answer says.
func answerOf(resp *http.Response, most int) (a onceward.Answer, err error) {
	said := resp.Header.Get(oncehttp.HeaderOutcome)
	if said == "" {
		return a, fmt.Errorf("gateway: the answer has HTTP status %d: %w", resp.StatusCode, errNoWord)
	}
	outcome, err := oncehttp.ParseOutcome(said)
	if err != nil {
		return a, err
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
	resp.Header.Del(oncehttp.HeaderOutcome)
	resp.Header.Del(oncehttp.HeaderReason)
	result, err := oncehttp.NewResult(resp.StatusCode, resp.Header, body)
	if err != nil {
		return a, err
	}
	if outcome == oncehttp.Done {
		return onceward.Happened(result), nil
	}
	return onceward.AnsweredNoWith(reason, result), nil
}
