package oncehttp

import (
	"fmt"
	"net/http"

	"github.com/onceward/onceward/driver"
)

// Outcome is what an answer means for the key.
type Outcome uint8

// The outcomes. The zero value leaves it to the status.
const (
	ByStatus Outcome = iota
	Done             // the work is done: replay this answer
	Final            // the answer is no: replay it
	NotDone          // nothing happened: the key is free again
	Unknown          // nobody can tell
)

// ParseOutcome reads the word of the Onceward-Outcome header and of the configuration.
func ParseOutcome(word string) (Outcome, error) {
	switch word {
	case "done":
		return Done, nil
	case "final":
		return Final, nil
	case "not-done":
		return NotDone, nil
	case "unknown":
		return Unknown, nil
	}
	return ByStatus, fmt.Errorf("oncehttp: outcome %q: use done, final, not-done or unknown", word)
}

// String returns the word.
func (o Outcome) String() string {
	return [...]string{"", "done", "final", "not-done", "unknown"}[min(o, Unknown)]
}

// SetOutcome states what the answer means, whatever its status is. It must be called before the handler's first
// write; it is the Onceward-Outcome header, which never reaches the client.
func SetOutcome(w http.ResponseWriter, o Outcome) { w.Header().Set(HeaderOutcome, o.String()) }

// SetReason states why the work failed or why nobody can tell what it did, instead of "HTTP status 502": the record keeps
// it, people find it there, and duplicates are told it where the outcome is unknown. It may be called until the handler
// returns; it is the Onceward-Reason header, which never reaches the client.
func SetReason(w http.ResponseWriter, text string) { w.Header().Set(HeaderReason, text) }

// outcomeOf judges a status as documented: 2xx and 3xx are done; what says that nothing was executed frees the key;
// other refusals are final; a server's failure tells nothing, unless repeating is safe.
func outcomeOf(status int, header http.Header, repeatable func() bool) Outcome {
	switch status {
	case 401, 403, 407, 408, 421, 425, 429:
		return NotDone
	case http.StatusServiceUnavailable:
		if header.Get("Retry-After") != "" {
			return NotDone
		}
	case 501, 505:
		return Final
	}
	switch {
	case status < 400:
		return Done
	case status < 500:
		return Final
	case repeatable():
		return NotDone
	}
	return Unknown
}

func (o Outcome) failure() driver.Failure {
	switch o {
	case Final:
		return driver.Final
	case NotDone:
		return driver.Retryable
	}
	return driver.Unknown
}
