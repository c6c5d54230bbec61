package attribute_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// A peer is a package of Python that explains the same nets, in a process of its own.
type peer struct {
	name, versions string
	question       io.Writer
	answers        *bufio.Scanner
}

// startPeers starts the wanted peers that $PYTHON has, or python3.
func startPeers(b *testing.B, net string) []*peer {
	b.Helper()
	var all []*peer
	for _, name := range []string{"captum", "grad-cam", "lxt"} {
		if !wanted("PEERS", name) {
			continue
		}
		if p, err := startPeer(b, name, net); err != nil {
			b.Logf("without %s: %v", name, err)
		} else {
			all = append(all, p)
		}
	}
	return all
}

func startPeer(b *testing.B, name, net string) (*peer, error) {
	b.Helper()
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	shapes := filepath.Join(root, "stages", "internal", "program", "testdata", "shapes.py")
	cmd := exec.Command(cmp.Or(os.Getenv("PYTHON"), "python3"), "-W", "ignore",
		filepath.Join("testdata", "peer_times.py"), name, shapes, net, strconv.Itoa(threads()))
	var said strings.Builder
	cmd.Stderr = &said
	question, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &peer{name: name, question: question, answers: bufio.NewScanner(answers)}
	if !p.answers.Scan() {
		_ = cmd.Wait() // its own message is the better one
		return nil, fmt.Errorf("it isn't there: %s", strings.TrimSpace(said.String()))
	}
	p.versions = p.answers.Text()
	b.Cleanup(func() {
		question.Close()
		_ = cmd.Wait() // it was heard
	})
	return p, nil
}

// ask returns the peer's seconds an image, and the batch it took; 0 and why if it can't tell.
func (p *peer) ask(question string) (seconds float64, said string) {
	fmt.Fprintln(p.question, question)
	if !p.answers.Scan() {
		return 0, "its process ended"
	}
	number, rest, _ := strings.Cut(p.answers.Text(), " ")
	seconds, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, rest
	}
	return seconds, rest
}

// A race is what a peer was measured at beside one method.
type race struct {
	*peer
	question, batch      string
	theirs, faster, bare []float64 // seconds an image; ratios to ours, also of bare forward passes
}

// races has each peer find its best batch for a method, and returns those that have the method.
func races(b *testing.B, peers []*peer, question string) []*race {
	b.Helper()
	var all []*race
	for _, p := range peers {
		seconds, said := p.ask(question)
		if seconds > 0 {
			seconds, _ = p.ask(bare)
		}
		if seconds == 0 {
			b.Logf("%s: %s", p.name, said)
			continue
		}
		all = append(all, &race{peer: p, question: question, batch: said})
	}
	return all
}

// bare asks for the forward pass alone.
const bare = "forward 0"

// run has the peer answer after our run, which took so many seconds an image.
func (r *race) run(b *testing.B, ours float64, forward func() float64) {
	b.Helper()
	theirs, said := r.ask(r.question)
	own := forward()
	passes, _ := r.ask(bare)
	if theirs == 0 || passes == 0 {
		b.Fatalf("%s, which answered before: %s", r.name, said)
	}
	r.theirs, r.faster = append(r.theirs, theirs), append(r.faster, theirs/ours)
	r.bare = append(r.bare, passes/own)
}

// report reports the medians of the ratios.
func (r *race) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(median(r.faster), "×"+r.name)
	b.ReportMetric(median(r.bare), "×bare-"+r.name)
	b.Logf("%s, batch %s: %.3g images/s; ours %.2f × as fast (%.2f to %.2f), bare forward passes %.2f ×",
		r.versions, r.batch, 1/median(r.theirs), median(r.faster), slices.Min(r.faster), slices.Max(r.faster),
		median(r.bare))
}
