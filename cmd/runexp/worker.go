package main

// workerVerb is what the command calls itself with for what might end it: see
// [registry.UseWorkers]. No user needs it, so no help names it.
const workerVerb = "worker"

// faultText is what a fault in a library ends the command with, behind the signal's name.
const faultText = " in ONNX Runtime: a model made it crash, or memory ran out; a run goes on with the same command, and a model's crash then costs its own cells\n"
