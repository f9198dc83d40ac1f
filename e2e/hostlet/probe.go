package hostlet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe runs p against the container until ctx ends, and calls verdict each
// time the outcome changes by p's thresholds. since is when the container
// started, from which the initial delay counts.
func probe(ctx context.Context, p *corev1.Probe, c *corev1.Container, addr string, since time.Time, verdict func(ok bool)) {
	timer := time.NewTimer(time.Until(since.Add(seconds(p.InitialDelaySeconds))))
	defer timer.Stop()
	var streak int32 // of equal outcomes
	var last, told, spoke bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(seconds(p.PeriodSeconds))
		ok := attempt(ctx, p, c, addr) == nil
		if ctx.Err() != nil {
			return
		}
		if ok != last {
			last, streak = ok, 0
		}
		streak++
		threshold := p.FailureThreshold
		if ok {
			threshold = p.SuccessThreshold
		}
		if streak >= threshold && (!spoke || told != ok) {
			told, spoke = ok, true
			verdict(ok)
		}
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// prober skips verification, as kubelet does, and opens a connection per probe:
// a kept one would outlive the process that it is to judge.
var prober = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
}}

func attempt(ctx context.Context, p *corev1.Probe, c *corev1.Container, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(p.TimeoutSeconds))
	defer cancel()
	if tcp := p.TCPSocket; tcp != nil {
		target, err := endpoint(tcp.Host, tcp.Port, c, addr)
		if err != nil {
			return err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	get := p.HTTPGet
	target, err := endpoint(get.Host, get.Port, c, addr)
	if err != nil {
		return err
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+target+get.Path, http.NoBody)
	if err != nil {
		return err
	}
	for _, h := range get.HTTPHeaders {
		req.Header.Add(h.Name, h.Value)
	}
	resp, err := prober.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("probe answered with %s", resp.Status)
	}
	return nil
}

// endpoint of a probe: the Pod's address unless it names a host.
func endpoint(host string, port intstr.IntOrString, c *corev1.Container, addr string) (string, error) {
	if host == "" {
		host = addr
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("container %s has no port named %q", c.Name, port.StrVal)
}
