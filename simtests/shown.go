package simtests

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxText  = 2000 // bytes of what a trace shows of a message or a line
	maxDepth = 6    // of values in values
	maxItems = 20   // of a slice or a map
)

// shown is a message for a person: its fields that are not zero, bytes as text, and
// what cannot be shown, such as functions and channels, left out.
func shown(m any) string {
	var b strings.Builder
	show(&b, reflect.ValueOf(m), 0)
	return clipped(b.String())
}

// clipped bounds a text, at the end of a character.
func clipped(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func show(b *strings.Builder, v reflect.Value, depth int) {
	if b.Len() > maxText {
		return
	}
	if depth > maxDepth {
		b.WriteString("…")
		return
	}
	if v.IsValid() && v.CanInterface() {
		switch x := v.Interface().(type) {
		case time.Duration:
			b.WriteString(x.String())
			return
		case time.Time:
			b.WriteString(x.Format(time.RFC3339Nano))
			return
		case error:
			if !empty(v) {
				b.WriteString(strconv.Quote(x.Error()))
				return
			}
		}
	}
	switch v.Kind() {
	case reflect.String:
		b.WriteString(strconv.Quote(v.String()))
	case reflect.Pointer, reflect.Interface:
		show(b, v.Elem(), depth+1)
	case reflect.Struct:
		showStruct(b, v, depth)
	case reflect.Slice, reflect.Array:
		showList(b, v, depth)
	case reflect.Map:
		fmt.Fprintf(b, "map of %d", v.Len()) // whose order is not to be seen
	case reflect.Bool:
		b.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		b.WriteString(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		b.WriteString(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default:
		b.WriteString("…")
	}
}

func showStruct(b *strings.Builder, v reflect.Value, depth int) {
	b.WriteByte('{')
	first := true
	for i := range v.NumField() {
		f := v.Field(i)
		if empty(f) {
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(v.Type().Field(i).Name + ": ")
		show(b, f, depth+1)
	}
	b.WriteByte('}')
}

func showList(b *strings.Builder, v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		text := make([]byte, min(v.Len(), maxText))
		for i := range text {
			text[i] = byte(v.Index(i).Uint())
		}
		b.WriteString(strings.ToValidUTF8(string(text), "\uFFFD"))
		return
	}
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == maxItems {
			fmt.Fprintf(b, "… %d in all", v.Len())
			break
		}
		show(b, v.Index(i), depth+1)
	}
	b.WriteByte(']')
}

// empty reports whether a field says nothing: it is zero, or cannot be shown.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return true
	}
	return v.IsZero()
}
