package simtests

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// history is what one run of a scenario follows from.
type history struct {
	Seed uint64 `json:"seed"`
	// Choices are the scheduler's decisions; nil: drawn from the seed. Missing ones at
	// the end are 0.
	Choices []uint16 `json:"choices,omitzero"`
	// Faults are those that may happen, by name and number; nil: as drawn.
	Faults []string `json:"faults,omitzero"`
}

// tokenPrefix is that of the first form of tokens.
const tokenPrefix = "sim1-"

// token is the history as a word.
func (h history) token() string {
	if h.Choices == nil && h.Faults == nil {
		return fmt.Sprintf("%s%d", tokenPrefix, h.Seed)
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // numbers and strings
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression) // the level is one
	_, _ = w.Write(b)                                       // a buffer takes all
	_ = w.Close()
	return tokenPrefix + "x" + base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

func parseToken(token string) (history, error) {
	var h history
	bad := func(err error) (history, error) {
		return h, fmt.Errorf("simtests: %q is not a token of a simulation, such as sim1-42: %w", token, err)
	}
	word, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return bad(fmt.Errorf("it does not begin with %s", tokenPrefix))
	}
	packed, ok := strings.CutPrefix(word, "x")
	if !ok {
		if err := json.Unmarshal([]byte(word), &h.Seed); err != nil {
			return bad(err)
		}
		return h, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(packed)
	if err != nil {
		return bad(err)
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), 16<<20))
	if err != nil {
		return bad(err)
	}
	if err := json.Unmarshal(plain, &h); err != nil {
		return bad(err)
	}
	return h, nil
}

// casesDir is where the histories of a test that failed are kept.
func casesDir(t *testing.T) string {
	return filepath.Join("testdata", "simtests", strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()))
}

// kept are the histories of earlier failures, in the order of their names.
func kept(t *testing.T) ([]history, error) {
	dir := casesDir(t)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []history
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("simtests: %w", err)
		}
		line, _, _ := strings.Cut(string(b), "\n")
		h, err := parseToken(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err)
		}
		all = append(all, h)
	}
	if err != nil {
		return nil, fmt.Errorf("simtests: %w", err)
	}
	return all, nil
}

// keep writes a failing history to testdata, and says where. A history that cannot
// be written is in the report all the same.
func keep(t *testing.T, h history, o outcome) string {
	token := h.token()
	sum := sha256.Sum256([]byte(token))
	dir := casesDir(t)
	path := filepath.Join(dir, hex.EncodeToString(sum[:6])+".txt")
	text := fmt.Sprintf("%s\n\n%s\n", token, strings.Join(o.failures, "\n"))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "not kept: " + err.Error()
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "not kept: " + err.Error()
	}
	return "kept in " + path + ", which runs first from now on; delete it when it is of no more use"
}

// shrink makes a failing history smaller: without the faults that do not matter, and
// with the plainest decisions that still make it fail.
func (x *explorer) shrink(h history, o outcome) (history, outcome) {
	left := x.c.Shrink
	try := func(c history) bool {
		if left <= 0 {
			return false
		}
		left--
		p := x.play(c, false)
		if !p.failed() || p.unseeded || kind(p) != kind(o) {
			return false
		}
		h, o = c, p
		return true
	}
	// As it was drawn, written down.
	drawn := history{Seed: h.Seed, Choices: slices.Clone(o.taken), Faults: slices.Clone(o.fired)}
	if drawn.Choices == nil {
		drawn.Choices = []uint16{}
	}
	if drawn.Faults == nil {
		drawn.Faults = []string{}
	}
	if !try(drawn) {
		return h, o
	}
	try(history{Seed: h.Seed, Choices: []uint16{}, Faults: h.Faults})
	for i := len(h.Faults) - 1; i >= 0; i-- {
		if i < len(h.Faults) {
			try(history{Seed: h.Seed, Choices: h.Choices, Faults: slices.Delete(slices.Clone(h.Faults), i, i+1)})
		}
	}
	for size := len(h.Choices); size >= 1; size /= 2 {
		for from := 0; from < len(h.Choices); from += size {
			to := min(from+size, len(h.Choices))
			if allZero(h.Choices[from:to]) {
				continue
			}
			c := slices.Clone(h.Choices)
			clear(c[from:to])
			try(history{Seed: h.Seed, Choices: trimmed(c), Faults: h.Faults})
		}
		if left <= 0 {
			break
		}
	}
	h.Choices = trimmed(h.Choices)
	return h, o
}

// kind is what a failure is about: the start of its first line, or of what testify
// calls the error.
func kind(o outcome) string {
	if len(o.failures) == 0 {
		return ""
	}
	text := o.failures[0]
	if _, after, ok := strings.Cut(text, "Error:"); ok {
		text = after
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	name, _, _ := strings.Cut(line, ":")
	return name
}

func allZero(c []uint16) bool { return !slices.ContainsFunc(c, func(v uint16) bool { return v != 0 }) }

// trimmed drops the zeros at the end, which need not be given.
func trimmed(c []uint16) []uint16 {
	for len(c) > 0 && c[len(c)-1] == 0 {
		c = c[:len(c)-1]
	}
	return c
}
