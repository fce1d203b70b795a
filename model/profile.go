package model

import (
	"bytes"
	"cmp"
	_ "embed" // the profiles
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

//go:embed profiles.json
var profiles []byte

// Profiles are what is known of models and servers, as data: [ReadProfiles] reads a file of
// the user's, and [Profiles.Extend] puts it before what is built in. It is read-only once it
// is in use.
type Profiles struct {
	// Date is the day on which the data was looked up, such as 2026-11-26; "": not said.
	Date   string         `json:"date,omitempty"`
	Models []ModelProfile `json:"models,omitempty"`
	// Names are short names of models, by the pattern of the models beside which they hold: with
	// {"claude*": {"haiku": "claude-haiku-5-5"}}, haiku is a name for who works with a claude model.
	Names   map[string]map[string]string `json:"names,omitempty"`
	Servers []ServerProfile              `json:"servers,omitempty"`
}

// ModelProfile is what is known of the models whose name matches.
type ModelProfile struct {
	// Match is a pattern of [path.Match] for the model's name, without what is before its
	// last slash.
	Match string `json:"match"`
	// Window is how many tokens a conversation may have; 0: not known.
	Window int `json:"window,omitempty"`
	// MaxOutput is how many tokens an answer may have; 0: not known.
	MaxOutput int `json:"maxOutput,omitempty"`
	// Effort is the one that requests ask for if the user names none, such as "medium"; "":
	// none, as for models that do not take it.
	Effort string `json:"effort,omitempty"`
	// TextOnly: the model reads text alone, and no images and documents.
	TextOnly bool `json:"textOnly,omitempty"`
	// Price is nil if it is not known.
	Price *Price `json:"price,omitempty"`
}

// ServerProfile is what is known of the servers whose host matches.
type ServerProfile struct {
	// Match is a pattern of [path.Match] for the URL's host, with the port if the pattern
	// has one.
	Match string `json:"match"`
	// KeyName is the environment variable in which the key is by custom. Nothing in this
	// package reads it.
	KeyName string `json:"keyName,omitempty"`
	Quirks  Quirks `json:"quirks,omitzero"`
}

// Price is in US dollars for a million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	// CacheHour is for what is kept in the cache for an hour; 0: twice Input, as Anthropic has it.
	CacheHour float64 `json:"cacheHour,omitempty"`
	// Batch is the part of these prices that an API of batches takes; 0: 0.5, as Anthropic and
	// OpenAI have it.
	Batch float64 `json:"batch,omitempty"`
}

// Cost is what an answer costs, in US dollars.
func (p Price) Cost(u Usage) float64 {
	million := 1e6
	if u.Batched {
		million /= cmp.Or(p.Batch, 0.5)
	}
	return float64(u.Input)/million*p.Input + float64(u.Output)/million*p.Output +
		float64(u.CacheRead)/million*p.CacheRead + float64(u.CacheWrite-u.CacheHour)/million*p.CacheWrite +
		float64(u.CacheHour)/million*cmp.Or(p.CacheHour, 2*p.Input)
}

// DefaultProfiles returns those that are built in. Prices and windows are data that ages:
// what a provider publishes counts.
func DefaultProfiles() *Profiles {
	p, err := ReadProfiles(bytes.NewReader(profiles))
	if err != nil {
		panic(err) // a test reads them
	}
	return p
}

// ReadProfiles reads profiles: one JSON object of the form of [Profiles]. An unknown
// member, an invalid pattern and a negative number are errors.
func ReadProfiles(r io.Reader) (*Profiles, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var p Profiles
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("read the profiles of models: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the profiles of models: something follows the object")
	}
	for i, m := range p.Models {
		switch _, err := path.Match(m.Match, ""); {
		case err != nil || m.Match == "":
			return nil, fmt.Errorf("read the profiles of models: models[%d].match is %q, which is no pattern", i, m.Match)
		case m.Window < 0 || m.MaxOutput < 0:
			return nil, fmt.Errorf("read the profiles of models: models[%d] (%s) has a negative number of tokens", i, m.Match)
		case m.Price != nil && min(m.Price.Input, m.Price.Output, m.Price.CacheRead, m.Price.CacheWrite, m.Price.CacheHour, m.Price.Batch) < 0:
			return nil, fmt.Errorf("read the profiles of models: models[%d] (%s) has a negative price", i, m.Match)
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(p.Names)) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return nil, fmt.Errorf("read the profiles of models: names has %q, which is no pattern", pattern)
		}
	}
	for i, s := range p.Servers {
		if _, err := path.Match(s.Match, ""); err != nil || s.Match == "" {
			return nil, fmt.Errorf("read the profiles of models: servers[%d].match is %q, which is no pattern", i, s.Match)
		}
	}
	return &p, nil
}

// Extend returns profiles in which own come first: the first that matches counts.
func (p *Profiles) Extend(own *Profiles) *Profiles {
	all := &Profiles{Date: p.Date, Models: slices.Concat(own.Models, p.Models), Servers: slices.Concat(own.Servers, p.Servers)}
	all.Names = maps.Clone(p.Names)
	for _, pattern := range slices.Sorted(maps.Keys(own.Names)) {
		if all.Names == nil {
			all.Names = map[string]map[string]string{}
		}
		both := maps.Clone(all.Names[pattern])
		if both == nil {
			both = map[string]string{}
		}
		maps.Copy(both, own.Names[pattern])
		all.Names[pattern] = both
	}
	return all
}

// Named is the model that a short name, such as haiku, means for who works with the model beside;
// "": none. The longest pattern that matches and has the name counts.
func (p *Profiles) Named(short, beside string) string {
	base := beside[strings.LastIndexByte(beside, '/')+1:]
	found, by := "", ""
	for _, pattern := range slices.Sorted(maps.Keys(p.Names)) {
		if name, ok := p.Names[pattern][short]; ok && matches(pattern, base) && (found == "" || len(pattern) > len(by)) {
			found, by = name, pattern
		}
	}
	return found
}

// Model returns the first profile that matches the model's name, with or without the
// vendor before a slash; the zero value if none does.
func (p *Profiles) Model(name string) ModelProfile {
	base := name[strings.LastIndexByte(name, '/')+1:]
	for _, m := range p.Models {
		if matches(m.Match, name) || base != name && matches(m.Match, base) {
			return m
		}
	}
	return ModelProfile{}
}

// Server returns the first profile that matches the URL's host; the zero value if none does.
func (p *Profiles) Server(at string) ServerProfile {
	u, err := url.Parse(at)
	if err != nil {
		return ServerProfile{}
	}
	for _, s := range p.Servers {
		if matches(s.Match, u.Host) || matches(s.Match, u.Hostname()) {
			return s
		}
	}
	return ServerProfile{}
}

func matches(pattern, s string) bool {
	// Most patterns begin with a letter, which rules most names out.
	if pattern != "" && pattern[0] >= 'a' && pattern[0] <= 'z' && (s == "" || s[0] != pattern[0]) {
		return false
	}
	ok, _ := path.Match(pattern, s)
	return ok
}
