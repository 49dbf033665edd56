package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, directory string) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), pool
}

// TestServeGuarded has a web configuration file ask for TLS and a password.
func TestServeGuarded(t *testing.T) {
	directory := t.TempDir()
	certificate, key, pool := selfSigned(t, directory)
	hash, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(directory, "web.yml")
	text := "tls_server_config: {cert_file: " + certificate + ", key_file: " + key + "}\nbasic_auth_users: {operator: '" + string(hash) + "'}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, _ := churn(t)
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	e := &environment{stdout: io.Discard, stderr: io.Discard}
	ended := make(chan int, 1)
	go func() {
		ended <- e.run(ctx, []string{"serve", "--listen", address, "--web-config", config, "--pid", strconv.Itoa(pid), "--probes", "alloc"})
	}()
	defer func() { cancel(); <-ended }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	status := func(url, password string) (int, string) {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			request.SetBasicAuth("operator", password)
		}
		answer, err := client.Do(request)
		if err != nil {
			return 0, ""
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	eventually(t, "the password opens", func() bool {
		code, body := status("https://"+address+"/metrics", "open sesame")
		return code == http.StatusOK && strings.Contains(body, "memtrace_target_up")
	})
	for _, wrong := range []string{"", "guess"} {
		if code, body := status("https://"+address+"/metrics", wrong); code != http.StatusUnauthorized || strings.Contains(body, "memtrace_") {
			t.Errorf("with the password %q: status %d", wrong, code)
		}
	}
	if code, body := status("http://"+address+"/metrics", "open sesame"); code == http.StatusOK || strings.Contains(body, "memtrace_") {
		t.Errorf("without TLS: status %d", code)
	}
}
