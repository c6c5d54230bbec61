//go:build !unix

package ort

import (
	"os"
	"time"
)

func ignoreSignals() {}

// What a process takes is left to the system.
func processorTime() time.Duration { return 0 }

func signalOf(*os.ProcessState) string { return "" }

func limits(addresses, data int64) []Room { return nil }
