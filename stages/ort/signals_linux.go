//go:build amd64 || arm64

package ort

/*
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

extern char __executable_start, etext;

static struct { int number; const char *name; struct sigaction before; } caught[] = {
	{SIGFPE, "SIGFPE"}, {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
};
static const int kinds = sizeof caught / sizeof caught[0];

static char sentence[512];
static int exit_code;

static uintptr_t place(void *context) {
	ucontext_t *u = context;
#if defined(__x86_64__)
	return u->uc_mcontext.gregs[REG_RIP];
#else
	return u->uc_mcontext.pc;
#endif
}

static int out = 2;

static void print(const char *text) {
	if (write(out, text, strlen(text)) < 0) {} // there is nowhere else to report it
}

static void print_to(int file) { out = file; }

static void on_fault(int number, siginfo_t *info, void *context) {
	uintptr_t at = place(context);
	// A call of a null function is taken for Go's.
	int own = at == 0 || (at >= (uintptr_t)&__executable_start && at < (uintptr_t)&etext);
	// Go has printed the reason, and aborts.
	if (own && number == SIGABRT && info->si_code == SI_TKILL) _exit(exit_code);
	// A fault is a signal from the kernel, or this process's own abort; others were sent.
	int sent = info->si_code == SI_USER || info->si_code == SI_QUEUE ||
		(number != SIGABRT && info->si_code == SI_TKILL);
	for (int i = 0; i < kinds; i++) {
		if (caught[i].number != number) continue;
		if (own || sent) {
			struct sigaction *before = &caught[i].before;
			if (before->sa_flags & SA_SIGINFO) {
				before->sa_sigaction(number, info, context);
				return;
			}
			sigaction(number, before, 0);
			syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
			return;
		}
		print(caught[i].name);
		print(sentence);
		_exit(exit_code);
	}
}

static void catch_faults(const char *text, int code) {
	strncpy(sentence, text, sizeof sentence - 1);
	exit_code = code;
	struct sigaction new;
	memset(&new, 0, sizeof new);
	new.sa_sigaction = on_fault;
	new.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	sigfillset(&new.sa_mask);
	for (int i = 0; i < kinds; i++) {
		sigaction(caught[i].number, &new, &caught[i].before); // these signals can be caught
	}
}
*/
import "C"

import "runtime/debug"

// CatchFaults makes a fault in a library end this process with a sentence and an exit code instead of a
// list of goroutines. The signal's name is put before the sentence. Go still reports faults of the
// program's own code; if Go ends the process, for lack of memory for example, the exit code is the same.
func CatchFaults(sentence string, code int) {
	debug.SetTraceback("crash") // otherwise Go chooses the exit code
	C.catch_faults(C.CString(sentence), C.int(code))
}

// printFaultsTo sets the file to which the sentence is written.
func printFaultsTo(file int) { C.print_to(C.int(file)) }
