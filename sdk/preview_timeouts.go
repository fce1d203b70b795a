package sdk

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

// PreviewTimeout is one time limit of a session. In JSON the limit is a text such as
// "1m30s"; "0s" means no limit.
type PreviewTimeout struct {
	What string // what the limit is for, as in TimeoutError.What
	// Limit is the longest time; 0: no limit.
	Limit time.Duration
	// Option is the option that sets the limit, as in TimeoutError.SetBy; "": no option
	// sets it.
	Option string
	// Default says that the option was not given, so that Limit is its default.
	Default bool
}

type plannedTimeout struct {
	What    string `json:"what"`
	Limit   string `json:"limit"`
	Option  string `json:"option,omitempty"`
	Default bool   `json:"default,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (t PreviewTimeout) MarshalJSON() ([]byte, error) {
	return json.Marshal(plannedTimeout{t.What, t.Limit.String(), t.Option, t.Default})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *PreviewTimeout) UnmarshalJSON(raw []byte) error {
	var p plannedTimeout
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	limit, err := time.ParseDuration(p.Limit)
	*t = PreviewTimeout{p.What, limit, p.Option, p.Default}
	return err
}

// timeouts are the plan's, under the names of the options that the caller gave,
// and those of this package.
func previewTimeouts(o *Options, p *runtime.Preview) []PreviewTimeout {
	all := make([]PreviewTimeout, 0, len(p.Timeouts)+1)
	for _, t := range p.Timeouts {
		all = append(all, PreviewTimeout(t))
	}
	return append(all, PreviewTimeout{"close: all of it", max(closeTimeout(o), 0), "CloseTimeout", o.CloseTimeout == 0})
}
