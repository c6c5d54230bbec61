package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

var cacheVerbs = []string{"info", "gc", "verify", "merge"}

func cacheVerb(f flags) *verb {
	c := collection{narrow: &plan.Overrides{}}
	f["--apply"], f["-v"], f["--items"] = &c.apply, &c.each, &c.items
	f["--allow-python"] = &c.narrow.Python
	engine := f.engine()
	return &verb{
		name: "cache", takes: arity{1, anyNumber, "a subcommand: info, gc, verify or merge"},
		words: func() []string { return cacheVerbs },
		run: func(ctx context.Context, u *ui, args []string) error {
			what, files := args[0], args[1:]
			switch {
			case what == "merge" && len(files) == 0:
				return misuse("cache merge needs the folders of other stores, or files of shares")
			case (what == "info" || what == "verify") && len(files) > 0:
				return misuse("cache %s takes no argument: %q", what, files[0])
			}
			s, err := engine.open(u, what == "info" || what == "gc" && !c.apply)
			if err != nil {
				return err
			}
			switch what {
			case "info":
				return cacheInfo(u.out, s.store)
			case "gc":
				return s.collect(ctx, u, files, c)
			case "verify":
				return cacheVerify(ctx, u, s.store)
			case "merge":
				return cacheMerge(ctx, u, s.store, files)
			}
			hint := plan.Guess(what, cacheVerbs)
			return usage(fmt.Errorf("unknown verb %q of cache", what), hint)
		},
	}
}

func cacheInfo(w io.Writer, s *store.Store) error {
	in, err := s.Info()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "store\t%s\n", in.Dir)
	fmt.Fprintf(t, "results\t%d cells, %d items\n", in.Actions, in.Items)
	fmt.Fprintf(t, "objects\t%d files, %s\n", in.Objects, size(in.ObjectBytes))
	fmt.Fprintf(t, "records\t%s\n", size(in.RecordBytes))
	if in.Shares > 0 {
		const shares = "shares\t%d files, %s, %d items; %d in use, a run adds the others\n"
		fmt.Fprintf(t, shares, in.Shares, size(in.ShareBytes), in.ShareItems, in.SharesInUse)
	}
	if in.Damaged+in.Leftovers > 0 {
		const litter = "litter\t%d damaged objects, %d unfinished files; gc removes them\n"
		fmt.Fprintf(t, litter, in.Damaged, in.Leftovers)
	}
	return t.Flush()
}

// A collection says how garbage is collected: whether to remove it, whether single items count, and whether
// to name the cells whose results go.
type collection struct {
	apply, items, each bool
	narrow             *plan.Overrides // of the experiments in use
}

// collect removes the results that the experiments in files don't use; without files, the objects to which
// no result refers.
func (s *session) collect(ctx context.Context, u *ui, files []string, c collection) error {
	if c.apply {
		if err := s.addShares(ctx, u, ""); err != nil {
			return err
		}
	}
	var roots store.Roots
	if len(files) > 0 {
		keys := map[stages.Digest]bool{}
		for _, file := range files {
			p, err := load(ctx, file, c.narrow)
			if err != nil {
				return err
			}
			outlook, err := s.outlook(ctx, u, p)
			if err != nil {
				return err
			}
			outlook.Keys(keys)
		}
		roots.Action = func(key stages.Digest) bool { return keys[key] }
		if c.items {
			roots.Items = func(stages.Digest) bool { return false }
		}
	}
	r, err := s.store.GC(roots, c.apply)
	if err != nil {
		return err
	}
	if c.each {
		for _, c := range r.Cells {
			fmt.Fprintln(u.out, c)
		}
	}
	verb := "would remove"
	if c.apply {
		verb = "removed"
	}
	fmt.Fprintf(u.out, "%s %d results, %d objects of %s, %d leftovers; %d results and %s stay\n",
		verb, r.Actions, r.Objects, size(r.Bytes), r.Leftovers, r.ActionsKept, size(r.BytesKept))
	if !c.apply && r.Shares > 0 {
		const shares = "%d files of shares stay; --apply adds to the store what they hold\n"
		fmt.Fprintf(u.out, shares, r.Shares)
	}
	switch {
	case c.apply || r.Actions+r.Objects+r.Leftovers == 0:
	case c.each || len(r.Cells) == 0:
		u.hint("--apply removes it")
	default:
		u.hint("--apply removes it, -v names the cells")
	}
	return nil
}

func cacheVerify(ctx context.Context, u *ui, s *store.Store) error {
	problems, err := s.Verify(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(u.out, p)
	}
	if len(problems) == 0 {
		fmt.Fprintln(u.out, "every object has the digest that its name is")
	}
	return differs(len(problems) > 0)
}

// cacheMerge adds the results of other stores and of shares, whose files or folders paths name.
func cacheMerge(ctx context.Context, u *ui, s *store.Store, paths []string) error {
	refused := 0
	for _, path := range paths {
		m, found, err := s.MergeFiles(ctx, path)
		if !found && isFolder(path) {
			m, err = mergeStore(ctx, u, s, path)
		} else if !found {
			err = environment(fmt.Errorf("%q is no folder of a store, nor the file of a share", path))
		}
		if err != nil {
			return err
		}
		for _, reason := range m.Refused {
			u.warn(fmt.Sprintf("%s: refused: %s", path, reason))
		}
		const report = "%s: added %d results, %d records of items and %s; %d were there already; refused %d\n"
		fmt.Fprintf(u.out, report, path, m.Actions, m.Items, size(m.Bytes), m.ActionsKnown+m.ItemsKnown,
			len(m.Refused))
		refused += len(m.Refused)
	}
	return differs(refused > 0)
}

func mergeStore(ctx context.Context, u *ui, s *store.Store, dir string) (m store.MergeReport, err error) {
	other, err := store.Open(dir, store.Options{ReadOnly: true, Warn: u.warn})
	if err != nil {
		return m, environment(err)
	}
	m, err = s.Merge(ctx, other)
	return m, cmp.Or(err, other.Close())
}

// size writes a size with a unit.
func size(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1000, 0
	for ; x >= 999.95 && u < len(units)-1; u++ {
		x /= 1000
	}
	return fmt.Sprintf("%.1f %cB", x, units[u])
}
