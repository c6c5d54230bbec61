package publish

// experimentRenderer writes experiment.yaml: the experiment as it ran.
var experimentRenderer = renderer{
	name:  "experiment",
	files: []pattern{{"experiment.yaml", ""}},
	render: func(f *Folder, add func(name string, b []byte)) {
		add("experiment.yaml", f.Experiment)
	},
}
