package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/spell"
)

// decode reads n into v, which is settable. at is the path of n, for errors.
// What is wrong is reported, and decoding goes on.
func (r *configReader) decode(n *configNode, v reflect.Value, at string) {
	n = r.expand(n, at)
	if form := configForm(v.Type()); form != nil {
		form(r, n, v, at)
		return
	}
	if unmarshal, ok := v.Addr().Interface().(json.Unmarshaler); ok && v.NumMethod() > 0 && optional(v) {
		r.decodeOpt(n, v, unmarshal, at)
		return
	}
	if n.kind == configNull && v.Kind() != reflect.Struct { // an object of ours that is null is a mistake
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.decode(n, v.Elem(), at)
	case reflect.Struct:
		r.decodeStruct(n, v, at)
	case reflect.Map:
		r.decodeMap(n, v, at)
	case reflect.Slice:
		if r.want(n, configList, at) {
			v.Set(reflect.MakeSlice(v.Type(), len(n.list), len(n.list)))
			for i, item := range n.list {
				r.item(item, v.Index(i), fmt.Sprintf("%s[%d]", at, i))
			}
		}
	default:
		r.decodeScalar(n, v, at)
	}
}

// item reads what stands in a list or under a name. Unlike an option it cannot be left open.
func (r *configReader) item(n *configNode, v reflect.Value, at string) {
	if document := v.Type() == reflect.TypeFor[json.RawMessage](); n.kind == configNull && !document && !optional(v) {
		r.fail(n, at, "is null", "leave it out")
		return
	}
	r.decode(n, v, at)
}

// want reports whether n is of a kind, and fails if not.
func (r *configReader) want(n *configNode, kind configKind, at string) bool {
	if n.kind != kind {
		r.mismatch(n, kind.String(), at)
	}
	return n.kind == kind
}

func (r *configReader) mismatch(n *configNode, want, at string) {
	fix := ""
	if strings.HasPrefix(want, configText.String()) && (n.kind == configNumber || n.kind == configBool) {
		fix = "put it in quotes"
	}
	r.fail(n, at, fmt.Sprintf("is %s, and has to be %s", n.kind, want), fix)
}

func (r *configReader) decodeScalar(n *configNode, v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.String:
		if r.want(n, configText, at) {
			v.SetString(n.text)
		}
	case reflect.Bool:
		if b, err := strconv.ParseBool(n.text); n.kind == configBool || n.expanded && err == nil {
			v.SetBool(b)
			return
		}
		r.mismatch(n, configBool.String(), at)
	case reflect.Int, reflect.Int64:
		if n.kind != configNumber && !n.expanded {
			r.mismatch(n, "a whole number", at)
			return
		}
		i, err := wholeNumber(n.text)
		if err != nil || v.OverflowInt(i) {
			r.fail(n, at, fmt.Sprintf("is %s, and has to be a whole number", n.shown()), "")
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.text, 64)
		if err != nil || n.kind != configNumber && !n.expanded {
			r.mismatch(n, configNumber.String(), at)
			return
		}
		v.SetFloat(f)
	default:
		r.fail(n, at, "cannot be given in a configuration", "set it in Go")
	}
}

// wholeNumber reads a number without a fraction, however it is written: 3, 3.0 and 3e0.
func wholeNumber(text string) (int64, error) {
	i, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return i, nil
	}
	const exact = 1 << 53 // a float has no more digits
	if f, wrong := strconv.ParseFloat(text, 64); wrong == nil && f == math.Trunc(f) && math.Abs(f) < exact {
		return int64(f), nil
	}
	return 0, err
}

func (r *configReader) decodeMap(n *configNode, v reflect.Value, at string) {
	if !r.want(n, configObject, at) {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.pairs)))
	r.each(n, at, func(key, value *configNode, at string) {
		item := reflect.New(v.Type().Elem()).Elem()
		r.item(value, item, at)
		v.SetMapIndex(reflect.ValueOf(key.text).Convert(v.Type().Key()), item)
	})
}

// each calls f for every key of an object, and reports those that come twice.
func (r *configReader) each(n *configNode, at string, f func(key, value *configNode, at string)) {
	seen := map[string]bool{}
	for _, p := range n.pairs {
		path := configPath(at, p.key.text)
		if seen[p.key.text] {
			r.fail(p.key, path, "stands here twice", "leave one of them out")
			continue
		}
		seen[p.key.text] = true
		f(p.key, p.value, path)
	}
}

func configPath(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// configField is a key of an object and the field it is for.
type configField struct {
	index int
	ms    bool // a duration, given in milliseconds
}

const extraKey = "extra"

// configKeys are the keys that a struct takes.
func configKeys(t reflect.Type) map[string]configField {
	keys := map[string]configField{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Name == "Extra" && f.Type == reflect.TypeFor[map[string]json.RawMessage]():
			keys[extraKey] = configField{index: i}
		case name == "-" || name == "" || !f.IsExported():
		default:
			keys[name] = configField{index: i}
			if f.Type == reflect.TypeFor[time.Duration]() {
				keys[name+"Ms"] = configField{index: i, ms: true}
			}
		}
	}
	return keys
}

func (r *configReader) decodeStruct(n *configNode, v reflect.Value, at string) {
	if !r.want(n, configObject, at) {
		return
	}
	keys, by := configKeys(v.Type()), map[int]string{}
	r.each(n, at, func(key, value *configNode, at string) {
		f, known := keys[key.text]
		if key.text == extraKey && known {
			r.notExtra(value, at, keys)
		}
		switch {
		case !known:
			r.unknown(key, at, keys)
		case by[f.index] != "":
			r.fail(key, at, "says the same as "+by[f.index], "leave one of them out")
		case value.kind == configNull && requiredKey(v.Type(), f.index) != "": // reported below
		case value.kind == configNull && v.Field(f.index).Type() == reflect.TypeFor[json.RawMessage](): // none, not a null
		case f.ms:
			r.millis(value, v.Field(f.index), at)
		default:
			r.decode(value, v.Field(f.index), at)
		}
		if known && value.kind != configNull {
			by[f.index] = key.text
		}
	})
	for i := range v.NumField() {
		if name := requiredKey(v.Type(), i); name != "" && by[i] == "" {
			r.fail(n, configPath(at, name), "is missing", "give it")
		}
	}
}

// requiredKey is the key of a field that has to be given, or "". Those are the fields of the dialects' types that are
// always encoded, but for switches, which are off.
func requiredKey(t reflect.Type, i int) string {
	f := t.Field(i)
	name, how, _ := strings.Cut(f.Tag.Get("json"), ",")
	if t.PkgPath() != reflect.TypeFor[dialect.Options]().PkgPath() || how != "" || name == "-" || f.Type.Kind() == reflect.Bool {
		return ""
	}
	return name
}

// notExtra reports keys under extra that have a place of their own, and would be lost there.
func (r *configReader) notExtra(extra *configNode, at string, keys map[string]configField) {
	for _, p := range extra.pairs {
		if _, own := keys[p.key.text]; own {
			r.fail(p.key, configPath(at, p.key.text), "has a place of its own", "take it out of "+extraKey)
		}
	}
}

// unknown reports a key that is not among keys.
func (r *configReader) unknown(n *configNode, at string, keys map[string]configField) {
	if r.full() {
		r.more++
		return
	}
	best, least := "", 3
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if d := spell.Distance(plainKey(name), plainKey(n.text)); d < least && d < (len(name)+1)/2 {
			best, least = name, d
		}
	}
	fix := "look for it in the documentation of sdk.Options"
	if best != "" {
		fix = "did you mean " + best + "?"
	}
	r.fail(n, at, "is not known", fix)
}

// plainKey is a key without what its writers differ in: the vendors' SDKs for
// Python write max_turns, that for TypeScript maxTurns.
func plainKey(key string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' {
			return -1
		}
		return unicode.ToLower(c)
	}, key)
}

// millis reads a number of milliseconds.
func (r *configReader) millis(n *configNode, v reflect.Value, at string) {
	n = r.expand(n, at)
	if n.kind == configNull {
		return
	}
	ms, err := strconv.ParseFloat(n.text, 64)
	if err != nil || n.kind != configNumber && !n.expanded {
		r.mismatch(n, "a number of milliseconds", at)
		return
	}
	ns := ms * float64(time.Millisecond)
	if ns >= 1<<63 || ns < -1<<63 {
		r.fail(n, at, fmt.Sprintf("is %s, which is out of range", n.shown()), "")
		return
	}
	v.SetInt(int64(ns))
}

// optional reports whether v is an Opt.
func optional(v reflect.Value) bool {
	return strings.HasPrefix(v.Type().Name(), "Opt[")
}

// decodeOpt reads an Opt by way of the value that it holds.
func (r *configReader) decodeOpt(n *configNode, v reflect.Value, into json.Unmarshaler, at string) {
	if n.kind == configNull {
		v.SetZero()
		return
	}
	held := reflect.New(v.MethodByName("Value").Type().Out(0))
	before := len(r.errs)
	r.decode(n, held.Elem(), at)
	if len(r.errs) > before {
		return
	}
	doc, err := json.Marshal(held.Interface())
	if err == nil {
		err = into.UnmarshalJSON(doc)
	}
	if err != nil {
		r.fail(n, at, err.Error(), "")
	}
}

// raw is a document that is passed on, as JSON, with what its values ask of the
// environment.
func (r *configReader) raw(n *configNode, at string) json.RawMessage {
	var b bytes.Buffer
	r.expandAll(n, at).json(&b)
	return b.Bytes()
}

func (r *configReader) expandAll(n *configNode, at string) *configNode {
	out := *r.expand(n, at)
	out.list, out.pairs = nil, nil
	if out.kind == configText {
		return &out
	}
	for i, item := range n.list {
		out.list = append(out.list, r.expandAll(item, fmt.Sprintf("%s[%d]", at, i)))
	}
	r.each(n, at, func(key, value *configNode, at string) {
		out.pairs = append(out.pairs, configPair{key, r.expandAll(value, at)})
	})
	return &out
}
