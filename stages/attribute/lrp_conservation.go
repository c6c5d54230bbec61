package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// LRPConservationParams are the parameters of [LRPConservation].
type LRPConservationParams struct {
	Relevant
	NamedRules
}

// Validate refuses two rules for first layers.
func (p LRPConservationParams) Validate() error { return p.refuseTwo(p.Relevant) }

// LRPConservation accounts for the relevance at every node.
var LRPConservation = program.Stage(stages.Def[LRPConservationParams]{
	Name: "attribute/lrp-conservation",
	Doc: `where layer-wise relevance goes, layer by layer

The relevance of attribute/lrp-epsilon and its kin, from the output to the image: a line
for every node of the model, with what arrives there, what leaves it for its inputs, and
what its biases and other constants take, each the mean over the images. The rest is
what stabilisers take, and outputs none of whose inputs count. Where branches part and
meet, relevance is in all of them. Bach et al., PLOS ONE 2015.`,
	Version:   2,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "1", Backward: "1"},
	Relation:  stages.Whole,
	Device:    true,
	Inputs:    inputs(),
	Outputs: []stages.Port{{Name: "table", Type: stages.TableType,
		Doc: "one row per node, from the output on"}},
	Defaults: LRPConservationParams{Relevant: relevant(), NamedRules: NamedRules{FirstLayer{"same"},
		"epsilon"}},
	Check: func(p LRPConservationParams, wired func(string) bool) error {
		if err := p.check(wired); err != nil {
			return err
		}
		return checkRules(p, wired)
	},
	Run: runLRPConservation,
})

func runLRPConservation(ctx context.Context, p LRPConservationParams, e *stages.Env) error {
	if count := len(e.Ports["images"]); count != 1 {
		return fmt.Errorf("port images has the images of %d cells; this stage takes one", count)
	}
	images := e.Ports["images"][0].Items
	finder, err := newItemFinder(e)
	if err != nil {
		return err
	}
	audits := map[int]audit{} // by the net's width: texts run by their lengths
	var sums []program.Account
	for i := range images.Len() {
		item, err := images.At(i)
		if err != nil {
			return err
		}
		one, err := finder.env(item)
		if err != nil {
			return err
		}
		a, err := p.audit(ctx, one, audits)
		if err != nil {
			return err
		}
		group := passGroup{a.Gradient, []backwardPass{{Common: p.Common}}}
		if err := group.put(one, 0, a.net, 0); err != nil {
			return fmt.Errorf("item %q: %w", item.ID, err)
		}
		if err := a.Run(ctx); err != nil {
			return err
		}
		accounts := a.Accounts()
		if sums == nil {
			sums = make([]program.Account, len(accounts))
			for k, at := range accounts {
				sums[k].Node, sums[k].Op = at.Node, at.Op
			}
		}
		if !slices.EqualFunc(sums, accounts, sameNode) {
			return fmt.Errorf("item %q: the model has other nodes for its text than for those before",
				item.ID)
		}
		for k, at := range accounts {
			sums[k].Arrives += at.Arrives
			sums[k].Leaves += at.Leaves
			sums[k].Constants += at.Constants
		}
		e.Done(1)
	}
	e.Set("table", accountsTable(sums, images.Len()).Encode())
	return nil
}

// An audit accounts for the relevance of images of a net.
type audit struct {
	program.Audit
	net *program.Net
}

// audit returns the audit for the only image, or text, of e.
func (p LRPConservationParams) audit(ctx context.Context, e *stages.Env,
	made map[int]audit) (a audit, err error) {
	if a.net, err = program.Load(e); err != nil {
		return a, err
	}
	if known, ok := made[a.net.Width]; ok {
		return known, nil
	}
	q, err := p.question(ctx, e, a.net, p.named(a.net, p.Rules, p.FirstLayer).Policy())
	if err != nil {
		return a, err
	}
	q.Start = p.start()
	a.Audit, err = a.net.Audit(ctx, e.Slot, q)
	made[a.net.Width] = a
	return a, err
}

func sameNode(a, b program.Account) bool { return a.Node == b.Node && a.Op == b.Op }

// accountsTable returns the means of sums over images.
func accountsTable(sums []program.Account, images int) stages.Table {
	column := func(name string) stages.Column { return stages.Column{Name: name, Tolerance: 1e-3, Digits: 4} }
	t := stages.Table{
		Title: "Relevance at every node", Keys: []string{"node", "operator"},
		Numbers: []stages.Column{column("arrives"), column("leaves"), column("constants"), column("rest")},
	}
	for _, s := range sums {
		mean := func(v float64) stages.Number { return stages.Number(v / float64(images)) }
		t.Rows = append(t.Rows, stages.Row{
			Keys: []string{s.Node, s.Op},
			Numbers: []stages.Number{mean(s.Arrives), mean(s.Leaves), mean(s.Constants),
				mean(s.Arrives - s.Leaves - s.Constants)},
		})
	}
	return t
}

// An itemFinder finds the items of all ports that belong to an image, for a stage that reads whole sets: the
// item with its id, or else the first one with its origin.
type itemFinder struct {
	e     *stages.Env
	ports []struct{ ids, origins map[string]int } // empty where nothing is wired
}

// newItemFinder indexes the items of all ports.
func newItemFinder(e *stages.Env) (*itemFinder, error) {
	f := &itemFinder{e: e}
	for _, port := range e.Stage.Inputs {
		at := struct{ ids, origins map[string]int }{map[string]int{}, map[string]int{}}
		if port.Type.Items && e.Wired(port.Name) {
			items := e.Ports[port.Name][0].Items
			for i := range items.Len() {
				item, err := items.At(i)
				if err != nil {
					return nil, err
				}
				at.ids[item.ID] = i
				if _, ok := at.origins[item.Origin]; !ok {
					at.origins[item.Origin] = i
				}
			}
		}
		f.ports = append(f.ports, at)
	}
	return f, nil
}

// env returns the Env of one image as an itemwise stage of the same ports gets it.
func (f *itemFinder) env(image stages.Item) (*stages.Env, error) {
	one := *f.e
	call := stages.Call{Item: image}
	for k, port := range f.e.Stage.Inputs {
		i, ok := f.ports[k].ids[image.ID]
		if !ok {
			i, ok = f.ports[k].origins[image.Origin]
		}
		var members []stages.Member
		if ok {
			payload, err := f.e.Ports[port.Name][0].Load(i)
			if err != nil {
				return nil, err
			}
			members = []stages.Member{{Item: image, Data: payload}}
		}
		call.Members = append(call.Members, members)
	}
	one.Calls = []stages.Call{call}
	return &one, nil
}
