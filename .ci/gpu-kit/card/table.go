package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A table holds what is known of a card so far.
type table struct {
	facts    []fact
	figures  []figure
	verdicts []verdict
	// deviations are those in precisions below float32.
	deviations []deviation
	missed     []fact // steps or batches without a figure, and why
}

type fact struct{ name, text string }

// A figure is the speed of one task at one batch.
type figure struct {
	task, net, who string
	batch          int
	rate           float64 // images a second
	sampled        bool
	busy           float64 // per cent of the time in which the card computed anything
	memory         float64 // MiB in use, of all processes
}

// A verdict compares a stage with the processor.
type verdict struct {
	who, net, stage       string
	difference, tolerance float64 // see stages.Deviation
	failed                string  // why there is no difference
}

func (v verdict) within() bool { return v.failed == "" && v.difference <= v.tolerance }

func (t *table) missing(s step, why string) { t.missed = append(t.missed, fact{s.String(), why}) }

// hopeless reports whether a device computed none of several stages.
func (t *table) hopeless(who string) bool {
	failed := 0
	for _, v := range t.verdicts {
		switch {
		case v.who == who && v.failed == "":
			return false
		case v.who == who:
			failed++
		}
	}
	return failed > 1
}

// fact enters a fact once.
func (t *table) fact(name, text string) {
	if f := (fact{name, text}); !slices.Contains(t.facts, f) {
		t.facts = append(t.facts, f)
	}
}

// enter replaces a stage's earlier verdict.
func (t *table) enter(v verdict) {
	t.verdicts = slices.DeleteFunc(t.verdicts, func(o verdict) bool {
		return o.who == v.who && o.net == v.net && o.stage == v.stage
	})
	t.verdicts = append(t.verdicts, v)
}

// write writes table.md, and table.csv, which has a row for each figure, verdict and step without either.
func (t *table) write(dir string) error {
	var text strings.Builder
	w := csv.NewWriter(&text)
	rows := [][]string{{"net", "task", "who", "batch", "images/s", "busy %", "MiB", "difference", "tolerance",
		"failed"}}
	for _, f := range t.figures {
		busy, memory := "", ""
		if f.sampled {
			busy, memory = number(f.busy), number(f.memory)
		}
		rows = append(rows, []string{f.net, f.task, f.who, strconv.Itoa(f.batch), number(f.rate), busy,
			memory, "", "", ""})
	}
	for _, v := range t.verdicts {
		rows = append(rows, []string{v.net, v.stage, v.who, "", "", "", "", number(v.difference),
			number(v.tolerance), v.failed})
	}
	for _, d := range t.deviations {
		rows = append(rows, []string{d.net, d.stage + " " + d.quantity + " in " + d.precision, d.who, "", "",
			"", "", number(d.by), "", ""})
	}
	for _, m := range t.missed {
		rows = append(rows, []string{"", m.name, "", "", "", "", "", "", "", m.text})
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "table.csv"), []byte(text.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "table.md"), []byte(t.markdown()), 0o666)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// markdown returns the machine, parity, the best batches, all batches, and what is missing.
func (t *table) markdown() string {
	var b strings.Builder
	grid := func(title string, head []string, rows [][]string) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(&b, "## %s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "),
			strings.Repeat(" --- |", len(head)))
		for _, row := range rows {
			for i := range row {
				row[i] = strings.ReplaceAll(row[i], "|", `\|`)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		fmt.Fprintln(&b)
	}
	// What has the same text shares a row.
	pairs := func(facts []fact) (rows [][]string) {
		for _, g := range grouped(facts, func(f fact) string { return f.text }) {
			var names []string
			for _, f := range g {
				names = append(names, f.name)
			}
			rows = append(rows, []string{strings.Join(slices.Compact(names), "; "), g[0].text})
		}
		return rows
	}
	fmt.Fprint(&b, "# A card\n\n")
	grid("Machine", []string{"", ""}, pairs(t.facts))
	grid("Parity with the processor", []string{"device", "net", "within tolerance", "beyond", "failed",
		"largest difference"}, t.parity())
	grid("Beyond tolerance, or failed", []string{"device", "net", "stage", "difference", "tolerance or why"},
		t.beyond())
	grid("Deviation from float32 in other precisions: rows of docs/precision.csv", []string{"device",
		"precision", "stage", "quantity", "deviation", "net"}, t.precisions())
	grid("Speed at the best batch of each", []string{"net", "task", "by", "batch", "images/s", "compared",
		"card busy", "MiB in use"}, t.best())
	head, rows := t.batches()
	grid("Images a second by the most rows of a batch", head, rows)
	grid("Not measured", []string{"step", "why"}, pairs(t.missed))
	return b.String()
}

// grouped returns the lists of a slice that have a key in common, in the order of first appearance.
func grouped[T any](all []T, key func(T) string) (groups [][]T) {
	at := map[string]int{}
	for _, x := range all {
		k := key(x)
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], x)
	}
	return groups
}

func (t *table) parity() (rows [][]string) {
	for _, g := range grouped(t.verdicts, func(v verdict) string { return v.who + " " + v.net }) {
		within, failed := 0, 0
		var worst verdict
		for _, v := range g {
			switch {
			case v.within():
				within++
			case v.failed != "":
				failed++
				continue
			}
			if worst.stage == "" || v.difference > worst.difference {
				worst = v
			}
		}
		text := "none"
		if worst.stage != "" {
			text = fmt.Sprintf("%.2g, %s", worst.difference, worst.stage)
		}
		rows = append(rows, []string{g[0].who, g[0].net, fmt.Sprintf("%d of %d", within, len(g)),
			strconv.Itoa(len(g) - within - failed), strconv.Itoa(failed), text})
	}
	return rows
}

func (t *table) beyond() (rows [][]string) {
	var failed []verdict
	for _, v := range t.verdicts {
		switch {
		case v.failed != "":
			failed = append(failed, v)
		case !v.within():
			rows = append(rows, []string{v.who, v.net, v.stage, number(v.difference), number(v.tolerance)})
		}
	}
	cause := func(v verdict) string { return v.who + " " + v.net + " " + v.failed }
	for _, g := range grouped(failed, cause) { // a cause fails many stages
		var names []string
		for _, v := range g {
			names = append(names, v.stage)
		}
		rows = append(rows, []string{g[0].who, g[0].net, strings.Join(names, ", "), "failed", g[0].failed})
	}
	return rows
}

func (t *table) best() (rows [][]string) {
	fastest := func(g []figure) figure {
		return slices.MaxFunc(g, func(a, b figure) int { return cmp.Compare(a.rate, b.rate) })
	}
	for _, task := range grouped(t.figures, func(f figure) string { return f.net + " " + f.task }) {
		makers := grouped(task, func(f figure) string { return f.who })
		theirRate := 0.0
		for _, g := range makers {
			if g[0].who == theirs(g[0].task) {
				theirRate = fastest(g).rate
			}
		}
		for _, g := range makers {
			f := fastest(g)
			row := []string{f.net, f.task, f.who, strconv.Itoa(f.batch), number(f.rate), "", "", ""}
			if theirRate > 0 && f.who != theirs(f.task) {
				row[5] = fmt.Sprintf("%.2f × %s", f.rate/theirRate, theirs(f.task))
			}
			if f.sampled {
				row[6], row[7] = fmt.Sprintf("%.0f %%", f.busy), fmt.Sprintf("%.0f", f.memory)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (t *table) batches() (head []string, rows [][]string) {
	var batches []int
	for _, f := range t.figures {
		batches = append(batches, f.batch)
	}
	slices.Sort(batches)
	batches = slices.Compact(batches)
	head = []string{"net", "task", "by"}
	for _, b := range batches {
		head = append(head, strconv.Itoa(b))
	}
	maker := func(f figure) string { return f.net + " " + f.task + " " + f.who }
	for _, g := range grouped(t.figures, maker) {
		row := append([]string{g[0].net, g[0].task, g[0].who}, make([]string, len(batches))...)
		for _, f := range g {
			row[3+slices.Index(batches, f.batch)] = number(f.rate)
		}
		rows = append(rows, row)
	}
	return head, rows
}
