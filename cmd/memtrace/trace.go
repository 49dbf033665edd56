package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"memtrace/output"
	"memtrace/tracer"
	"memtrace/tracer/finding"
	"memtrace/tracer/launch"
	"memtrace/tracer/recording"
)

// commandGrace is how long a command may take to end after memtrace sent it SIGTERM.
const commandGrace = 5 * time.Second

// runTrace is memtrace without a subcommand: trace a process and report.
func runTrace(ctx context.Context, e *environment, arguments []string) error {
	flags, err := parseTrace(e, arguments)
	if err != nil {
		return err
	}
	if flags.version {
		fmt.Fprintln(e.stdout, versionLine())
		return nil
	}
	files, err := openOutputs(flags.outputs)
	if err != nil {
		return err
	}
	if len(flags.command) > 0 {
		return e.traceCommand(ctx, flags, files)
	}
	rec, err := e.tracePID(ctx, flags, nil)
	if err != nil {
		return err
	}
	return e.report(rec, flags, files)
}

// traceCommand starts a command, traces it, reports, and ends as the command did.
func (e *environment) traceCommand(ctx context.Context, flags *traceFlags, files []outputFile) error {
	command, err := launch.Start(ctx, flags.command)
	if errors.Is(err, launch.ErrEnded) {
		return err
	}
	if err != nil {
		return usageError("%w", err)
	}
	flags.options.PID = command.PID()
	rec, err := e.tracePID(ctx, flags, command)
	if err != nil {
		return err
	}
	if err := e.report(rec, flags, files); err != nil {
		return errors.Join(err, endCommand(command))
	}
	return e.finish(command, rec.Target.Exited)
}

// tracePID traces until the trace ends and returns what was found. command is the target
// where memtrace started it itself: held when tracePID is called, running or ended when it
// returns without an error, killed when it was never let run.
func (e *environment) tracePID(ctx context.Context, flags *traceFlags, command *launch.Command) (rec *recording.Recording, err error) {
	running := false
	defer func() {
		if err == nil || command == nil {
			return
		}
		if running {
			err = errors.Join(err, endCommand(command))
		} else {
			command.Kill()
		}
	}()
	session, err := tracer.Open(ctx, flags.options)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := session.Attach(ctx); err != nil {
		return nil, err
	}
	stopListening, err := e.listen(ctx, session, flags)
	if err != nil {
		return nil, err
	}
	defer stopListening()
	if err := dropPrivileges(len(flags.outputs) > 0); err != nil {
		return nil, err
	}
	if err := writeReadyFile(flags.readyFile, flags.options.PID); err != nil {
		return nil, err
	}
	signals := watchSignals(ctx, command)
	defer signals.stop()
	if command != nil {
		running = true
		if err := command.Release(); err != nil {
			return nil, err
		}
	}
	progress := e.startProgress(session, flags.quiet)
	err = session.Wait(signals.context)
	progress.stop()
	if err != nil {
		return nil, err
	}
	signals.tracingDone()
	rec, err = session.Record(ctx)
	if err != nil {
		return nil, err
	}
	rec.Findings = finding.Judge(rec)
	return rec, nil
}

// writeReadyFile tells scripts that the probes are attached: the file appears whole, and
// holds the target's process id.
func writeReadyFile(path string, pid int) error {
	if path == "" {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return unwritable(path, err)
	}
	_, err = fmt.Fprintf(file, "%d\n", pid)
	const readable = 0o644
	if err := errors.Join(err, file.Chmod(readable), file.Close(), os.Rename(file.Name(), path)); err != nil {
		return errors.Join(unwritable(path, err), os.Remove(file.Name()))
	}
	return nil
}

// report writes the recording to standard output and the files.
func (e *environment) report(rec *recording.Recording, flags *traceFlags, files []outputFile) error {
	options := output.Options{Top: flags.options.Top, Measure: flags.measure}
	var errs []error
	for _, file := range files {
		errs = append(errs, file.write(rec, options))
	}
	format, err := output.FormatForName(flags.format)
	if err != nil {
		return err
	}
	options = e.textOptions(options)
	if err := render(e.stdout, format, rec, options); err != nil {
		errs = append(errs, fmt.Errorf("write the report: %w", err))
	}
	return errors.Join(errs...)
}

// finish waits for the command and hands its exit status on. A command that outlives the
// trace is asked to end; then memtrace's own status is that of the trace.
func (e *environment) finish(command *launch.Command, exited bool) error {
	if !exited {
		return endCommand(command)
	}
	status, err := command.Wait()
	if err != nil {
		return err
	}
	if status != 0 {
		return commandEnded{status}
	}
	return nil
}

// endCommand asks the command to end and waits a while; one that stays is left running.
func endCommand(command *launch.Command) error {
	if err := command.Signal(os.Signal(terminate)); err != nil {
		return fmt.Errorf("end the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := command.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(commandGrace):
		return fmt.Errorf("the command (pid %d) did not end on SIGTERM and still runs", command.PID())
	}
}
