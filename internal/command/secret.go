package command

import "os"

// envWebhookSecret is the variable with the key of the signatures of --webhook. A flag
// would show it to every user of the machine.
const envWebhookSecret = "TROUPE_WEBHOOK_SECRET"

// ownEnv takes the variables that only this command may have out of its environment, which
// agents, setups and verifiers inherit, and returns a function that still knows them. Call it
// before anything starts.
func ownEnv() func(string) string {
	secrets := map[string]string{}
	for _, name := range []string{envWebhookSecret, keyVariable, natsVariable} {
		if secret, given := os.LookupEnv(name); given {
			secrets[name] = secret
			_ = os.Unsetenv(name) // the name is valid
		}
	}
	if len(secrets) > 0 {
		unreadable()
	}
	return func(name string) string {
		if secret, own := secrets[name]; own {
			return secret
		}
		return os.Getenv(name)
	}
}
