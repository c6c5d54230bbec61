// Command card is what runs on a machine with a graphics card: it checks that methods compute there what the
// processor computes, measures their speed next to PyTorch's and captum's, and prints one table.
//
//	card run [--rehearse] webgpu|cuda|all OUT [SECONDS]    everything, in processes of their own
//	card parity CLASS NET STAGES                           differences from the processor
//	card rounding CLASS NET PRECISION                      the same of curves in a precision
//	card speed CLASS NET TASK SECONDS BATCHES              images a second
//
// STAGES and BATCHES are lists with commas; "all" stands for every stage. The last three print lines for the
// first: see report.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "card:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: card run [--rehearse] webgpu|cuda|all OUT [SECONDS]")

func command(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "run":
		return runArgs(ctx, args[1:])
	case len(args) == 4 && args[0] == "parity":
		return parity(ctx, os.Stdout, args[1], args[2], strings.Split(args[3], ","))
	case len(args) == 4 && args[0] == "rounding":
		return rounding(ctx, os.Stdout, args[1], args[2], args[3])
	case len(args) == 6 && args[0] == "speed":
		seconds, err := strconv.ParseFloat(args[4], 64)
		if err != nil {
			return err
		}
		var batches []int
		for _, text := range strings.Split(args[5], ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			batches = append(batches, n)
		}
		return speed(ctx, os.Stdout, args[1], args[2], args[3], duration(seconds), batches)
	}
	return errUsage
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// runArgs parses the arguments of card run, and runs all. The kit is the folder of the command.
func runArgs(ctx context.Context, args []string) error {
	r := &run{log: os.Stdout}
	if len(args) > 0 && args[0] == "--rehearse" {
		r.rehearse, args = true, args[1:]
	}
	if len(args) < 2 || len(args) > 3 {
		return errUsage
	}
	switch args[0] {
	case "webgpu", "cuda":
		r.classes = args[:1]
	case "all":
		r.classes = []string{"webgpu", "cuda"}
	default:
		return errUsage
	}
	r.out = args[1]
	seconds := 540.0 // a command of ten minutes, with the pieces unpacked before
	if len(args) == 3 {
		var err error
		if seconds, err = strconv.ParseFloat(args[2], 64); err != nil {
			return errUsage
		}
	}
	ctx, cancel := context.WithTimeout(ctx, duration(seconds))
	defer cancel()
	return r.all(ctx)
}
