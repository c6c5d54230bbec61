//go:build !unix

package ort

import (
	"os"
	"time"
)

func ignoreSignals() {}

// Elsewhere the system alone limits processes.
func processorTime() time.Duration { return 0 }

func signalOf(*os.ProcessState) string { return "" }

func limits(addresses, data int64) []Room { return nil }
