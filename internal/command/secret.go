package command

import "os"

// envWebhookSecret is the variable with the key of the signatures of --webhook. A flag
// would show it to every user of the machine.
const envWebhookSecret = "TROUPE_WEBHOOK_SECRET"

// ownEnv takes the variables that only this command may have out of its environment, which
// agents, setups and verifiers inherit, and returns a function that still knows them. Call it
// before anything starts.
func ownEnv() func(string) string {
	secret, given := os.LookupEnv(envWebhookSecret)
	if !given {
		return os.Getenv
	}
	_ = os.Unsetenv(envWebhookSecret) // the name is valid
	unreadable()
	return func(name string) string {
		if name == envWebhookSecret {
			return secret
		}
		return os.Getenv(name)
	}
}
