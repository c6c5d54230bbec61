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

static int told = 2;

static void tell(const char *text) {
	if (write(told, text, strlen(text)) < 0) {} // there is nobody else to tell
}

static void tell_to(int file) { told = file; }

static void on_fault(int number, siginfo_t *info, void *context) {
	uintptr_t at = place(context);
	// A call of no function is taken for Go's.
	int own = at == 0 || (at >= (uintptr_t)&__executable_start && at < (uintptr_t)&etext);
	// Go has said what is wrong, and aborts.
	if (own && number == SIGABRT && info->si_code == SI_TKILL) _exit(exit_code);
	// Only the kernel and the process itself send what a fault is.
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
		tell(caught[i].name);
		tell(sentence);
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

// CatchFaults has this process end with a sentence and an exit code where a fault in a
// library would end it with a list of goroutines. The sentence begins with the signal's
// name. Of what happens in the program's own code Go tells; what ends the process there,
// such as a lack of memory, ends it with the same code.
func CatchFaults(sentence string, code int) {
	debug.SetTraceback("crash") // or else Go chooses the code
	C.catch_faults(C.CString(sentence), C.int(code))
}

// tellFaultsTo says which file gets the sentence.
func tellFaultsTo(file int) { C.tell_to(C.int(file)) }
