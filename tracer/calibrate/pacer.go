package calibrate

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// callsInBurst is how often the program passes the probe for each byte it reads.
const callsInBurst = 1000

// Layout of the program's file: the two headers, then the code.
const (
	headersSize = 64 + 56 // of an ELF file and of one segment, 64 bit
	loadAddress = 0x400000
	siteOffset  = headersSize + siteInCode
)

// pacer is the running program: it reads a byte, passes the probe callsInBurst times, writes
// a byte, and ends when there is nothing more to read.
type pacer struct {
	program *os.File
	process *os.Process
	say     *os.File
	hear    *os.File
}

// startPacer puts the program into memory and starts it.
func startPacer() (_ *pacer, err error) {
	p := &pacer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	image, err := programFile()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("memtrace-calibration", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file for the calibration program: %w", err)
	}
	p.program = os.NewFile(uintptr(fd), "the calibration program")
	if _, err := p.program.Write(image); err != nil {
		return nil, fmt.Errorf("write the calibration program: %w", err)
	}
	return p, p.start()
}

// start runs the program between two pipes. It gets none of memtrace's other descriptors, so
// that it ends with memtrace, however that ends.
func (p *pacer) start() error {
	in, say, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe to the calibration program: %w", err)
	}
	defer in.Close()
	p.say = say
	hear, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe from the calibration program: %w", err)
	}
	defer out.Close()
	p.hear = hear
	// A file open for writing cannot be executed: this way leads to another description of it.
	path := fmt.Sprintf("/proc/self/fd/%d", p.program.Fd())
	readable, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the calibration program: %w", err)
	}
	if err := p.program.Close(); err != nil {
		return fmt.Errorf("close the calibration program: %w", err)
	}
	p.program = readable
	path = fmt.Sprintf("/proc/self/fd/%d", readable.Fd())
	p.process, err = os.StartProcess(path, []string{"memtrace-calibration"}, &os.ProcAttr{
		Env: []string{}, Files: []*os.File{in, out}, Sys: &syscall.SysProcAttr{},
	})
	if err != nil {
		return fmt.Errorf("start the calibration program: %w", err)
	}
	return nil
}

// close ends the program and waits for it.
func (p *pacer) close() error {
	var errs []error
	if p.process != nil {
		errs = append(errs, p.process.Kill())
		_, err := p.process.Wait()
		errs = append(errs, err)
	}
	for _, file := range []*os.File{p.say, p.hear, p.program} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// programFile makes the program: an ELF file with one segment.
func programFile() ([]byte, error) {
	size := uint64(headersSize + binary.Size(code))
	var file bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
			Entry: loadAddress + headersSize, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
			Vaddr: loadAddress, Paddr: loadAddress, Filesz: size, Memsz: size, Align: 0x10000,
		},
		code,
	} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("make the calibration program: %w", err)
		}
	}
	return file.Bytes(), nil
}
