package fleet

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/agent-troupe/troupe/sdk"
)

// overlay is a copy of base in which the keys of raw replace those of base. A key with
// the zero value of its field replaces nothing.
func overlay(base *sdk.Options, raw json.RawMessage) (*sdk.Options, error) {
	o := *base
	if len(raw) == 0 {
		return &o, nil
	}
	own, err := sdk.LoadOptions(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	to, from := reflect.ValueOf(&o).Elem(), reflect.ValueOf(own).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return &o, nil
}
