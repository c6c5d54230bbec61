//go:build !unix

package ort

import (
	"os"
	"time"
)

func ignoreSignals() {}

// What a process takes is left to the system.
func processorTime() time.Duration { return 0 }
func residentMemory() int64        { return 0 }

func signalOf(*os.ProcessState) string { return "" }

func freeMemory() int64 { return 0 }
