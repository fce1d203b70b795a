package sdk

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
)

// derived are the fields of dialect.Options that are no option: facts about
// callbacks and surroundings, which this package or package runtime finds out.
func derived(field string) bool {
	switch field {
	case "HasCanUseTool", "HasPolicy", "HasResolveModel", "HasElicitation", "HasSessionArtifacts", "HasUserDialog", "HasSessionStore",
		"Hooks", "SDKMCPServers", "SettingsContent", "ParentEnv":
		return true
	}
	return false
}

// fill sets v to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		switch p := v.Addr().Interface().(type) {
		case *Opt[int]:
			*p = Some(7)
		case *Opt[bool]:
			*p = Some(true)
		case *Opt[float64]:
			*p = Some(7.5)
		case *Set:
			*p = All()
		case *SystemPrompt:
			*p = PresetPrompt("x")
		default:
			t.Fatalf("cannot fill a %v", v.Type())
		}
	default:
		t.Fatalf("cannot fill a %v", v.Type())
	}
}

func TestEveryOptionReachesTheDialect(t *testing.T) {
	t.Parallel()
	dialectType := reflect.TypeFor[dialect.Options]()
	for i := range dialectType.NumField() {
		field := dialectType.Field(i)
		own, found := reflect.TypeFor[Options]().FieldByName(field.Name)
		if derived(field.Name) {
			assert.False(t, found && own.Type == field.Type, "%s is derived and yet an option", field.Name)
			continue
		}
		if !assert.True(t, found, "dialect.Options.%s is not among sdk.Options", field.Name) {
			continue
		}
		require.Equal(t, field.Type, own.Type, "type of %s", field.Name)
		assert.Equal(t, field.Tag, own.Tag, "tag of %s", field.Name)

		var o Options
		want := reflect.ValueOf(&o).Elem().FieldByName(field.Name)
		fill(t, want)
		d := dataOf(&o)
		got := reflect.ValueOf(&d).Elem().Field(i)
		assert.False(t, got.IsZero(), "%s is not copied", field.Name)
		assert.Equal(t, want.Interface(), got.Interface(), "%s", field.Name)
		got.SetZero()
		assert.Equal(t, dialect.Options{}, d, "%s shows up elsewhere, too", field.Name)
	}
}

func TestZeroOptionsAreTheDialectsZero(t *testing.T) {
	t.Parallel()
	assert.Equal(t, dialect.Options{}, dataOf(&Options{}))
}
