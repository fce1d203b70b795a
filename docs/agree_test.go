package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

// chance generates random values that a schema allows, and sometimes values that it
// does not allow.
type chance struct {
	*rand.Rand
	root *schema
	odd  float64
}

func (c *chance) value(s *schema) any {
	if s == nil || c.Float64() < c.odd {
		odd := []any{nil, true, false, 0, 3, -1, 1.5, "", "x", "all", "5s", "{}", []any{}, []any{"a"}, []any{nil}, []any{3}, map[string]any{}, map[string]any{"a": 1}}
		return odd[c.IntN(len(odd))]
	}
	switch {
	case s.Ref != "":
		return c.value(c.root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")])
	case len(s.AnyOf) > 0:
		return c.value(s.AnyOf[c.IntN(len(s.AnyOf))])
	case len(s.Enum) > 0:
		return s.Enum[c.IntN(len(s.Enum))]
	}
	kinds := append(slices.Clone(s.Types), s.Type)
	switch kind := kinds[c.IntN(len(kinds))]; {
	case kind == "string" && strings.Contains(s.Pattern, "µs"):
		return []any{"5s", "1m30s", "0", "1.5h", "-3ms", "5"}[c.IntN(6)]
	case kind == "string" && s.Pattern != "":
		return "${V}"
	case kind == "string":
		return "x"
	case kind == "boolean":
		return c.IntN(2) == 0
	case kind == "integer":
		return []any{0, 3, -2, json.Number("3.0"), json.Number("2e1")}[c.IntN(5)]
	case kind == "number":
		return []any{0, 3, 1.5}[c.IntN(3)]
	case kind == "array":
		list := []any{}
		for range c.IntN(3) {
			list = append(list, c.value(s.Items))
		}
		return list
	case kind == "object":
		return c.object(s)
	}
	return nil
}

func (c *chance) object(s *schema) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if c.Float64() < 0.4 || slices.Contains(s.Required, name) && c.Float64() > c.odd {
			out[name] = c.value(s.Properties[name])
		}
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	for range c.IntN(3) {
		if !closed || c.Float64() < c.odd {
			out[fmt.Sprintf("k%d", c.IntN(5))] = c.value(s.AdditionalProperties)
		}
	}
	return out
}

// TestSchemaAndLoaderAgreeOnWhateverComes compares the schema and the loader for random
// values of each option.
func TestSchemaAndLoaderAgreeOnWhateverComes(t *testing.T) {
	t.Parallel()
	var s schema
	require.NoError(t, json.Unmarshal(generated(t), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	there := sdk.ExpandWith(func(string) (string, bool) { return "1", true })
	fine := 0
	for _, option := range slices.Sorted(maps.Keys(s.Properties)) {
		for seed := range uint64(60) {
			c := &chance{rand.New(rand.NewPCG(seed, 0)), &s, 0.05}
			doc, err := json.Marshal(map[string]any{option: c.value(s.Properties[option])})
			require.NoError(t, err)
			_, loaded := sdk.LoadOptions(strings.NewReader(string(doc)), there)
			if loaded != nil && beyondSchema(string(doc), loaded) {
				continue
			}
			var instance any
			require.NoError(t, json.Unmarshal(doc, &instance))
			checked := resolved.Validate(instance)
			if !assert.Equal(t, checked == nil, loaded == nil, "%s\nthe schema: %v\nthe loader: %v", doc, checked, loaded) {
				break
			}
			if loaded == nil {
				fine++
			}
		}
	}
	assert.Greater(t, fine, 2000, "most are fine")
}

// beyondSchema reports whether the loader rejects doc for a reason that a schema cannot express: variables, keys that
// exclude each other, and texts that are empty or look like JSON.
func beyondSchema(doc string, err error) bool {
	told := err.Error()
	return strings.Contains(doc, "$env") || strings.Contains(told, "says the same as") || strings.Contains(told, "begins like JSON") ||
		strings.Contains(told, "is empty")
}
