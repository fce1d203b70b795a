package session

import (
	"cmp"
	"encoding/json"
	"errors"
)

var errSecretShape = errors.New(`session: a secret is a text, or {"envVar": NAME}`)

// secretJSON is a secret as the vendor's documents write it: the text itself, or {"envVar": NAME}.
type secretJSON struct {
	text   string
	envVar *string
}

func (s *secretJSON) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &s.text) == nil {
		return nil
	}
	var from struct {
		EnvVar *string `json:"envVar"`
	}
	if err := json.Unmarshal(b, &from); err != nil || from.EnvVar == nil {
		return errSecretShape
	}
	s.envVar = from.EnvVar
	return nil
}

// UnmarshalJSON decodes an Auth. accessToken and serviceAccountKey may be a text, or {"envVar": NAME}, which sets
// EnvVar.
func (a *Auth) UnmarshalJSON(b []byte) error {
	var w struct {
		Type              AuthType   `json:"type"`
		AccessToken       secretJSON `json:"accessToken"`
		EnvVar            string     `json:"envVar"`
		ServiceAccountKey secretJSON `json:"serviceAccountKey"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*a = Auth{Type: w.Type, AccessToken: w.AccessToken.text, ServiceAccountKey: w.ServiceAccountKey.text, EnvVar: w.EnvVar}
	for _, from := range []struct {
		name     *string
		fallback string
	}{{w.AccessToken.envVar, DefaultTokenEnv}, {w.ServiceAccountKey.envVar, DefaultServiceAccountEnv}} {
		if from.name != nil {
			a.EnvVar = cmp.Or(*from.name, from.fallback)
		}
	}
	return nil
}
