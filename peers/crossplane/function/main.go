// Command function is a composition function for tests. The composed resources follow from three things alone, and a
// test changes one of them at a time: the input in the Composition, the spec of the composite, and the flag --version,
// which plays an upgrade of the function.
//
// The input:
//
//	mode: plain       # all children at once
//	      reactive    # all at once; each but the first shows the uid of the outside object of the one before it
//	      staged      # each but the first is composed when the one before it is ready
//	children: [a, b]  # a managed resource each, which is a ConfigMap outside
//	text: one         # ends up in each ConfigMap, with spec.size of the composite and the version of this function
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	fnv1 "github.com/crossplane/crossplane/v2/proto/fn/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"
)

type object = map[string]any

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	certs := flag.String("certs", "", "folder with ca.crt, tls.crt and tls.key")
	version := flag.String("version", "v1", "version of this function, which children show")
	flag.Parse()
	if err := serve(*listen, *certs, &function{version: *version}); err != nil {
		log.Fatal(err)
	}
}

// serve answers clients with a certificate of the authority, as Crossplane demands.
func serve(listen, certs string, f *function) error {
	own, err := tls.LoadX509KeyPair(filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		return err
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(ca) {
		return errors.New("ca.crt has no certificate")
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{own},
		ClientCAs:    authority,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	})))
	fnv1.RegisterFunctionRunnerServiceServer(server, f)
	log.Printf("version %s listens on %s", f.version, listener.Addr())
	return server.Serve(listener)
}

type function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	version string
}

// RunFunction says what a composite should be composed of.
func (f *function) RunFunction(_ context.Context, request *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := request.GetInput().AsMap()
	composite := request.GetObserved().GetComposite().GetResource().AsMap()
	observed := request.GetObserved().GetResources()
	desired := map[string]*fnv1.Resource{}
	before := ""
	for _, name := range names(input["children"]) {
		first := before == ""
		previous := observed[before].GetResource().AsMap()
		if input["mode"] == "staged" && !first && !ready(previous) {
			break
		}
		data := object{"text": text(input, "text"), "size": text(composite, "spec", "size"), "version": f.version}
		if input["mode"] == "reactive" && !first {
			data["previous"] = text(previous, "status", "atProvider", "manifest", "metadata", "uid")
		}
		child, err := structpb.NewStruct(managed(composite, name, data))
		if err != nil {
			return nil, err
		}
		state := fnv1.Ready_READY_FALSE
		if ready(observed[name].GetResource().AsMap()) {
			state = fnv1.Ready_READY_TRUE
		}
		desired[name] = &fnv1.Resource{Resource: child, Ready: state}
		before = name
	}
	return &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: request.GetMeta().GetTag()},
		Desired: &fnv1.State{Composite: request.GetDesired().GetComposite(), Resources: desired},
	}, nil
}

// managed is a resource of provider-kubernetes that stands for a ConfigMap outside.
func managed(composite object, child string, data object) object {
	namespace := text(composite, "metadata", "namespace")
	metadata := object{}
	if namespace == "" {
		// A composite without a namespace has a claim with one.
		namespace = text(composite, "spec", "claimRef", "namespace")
		metadata["namespace"] = namespace
	}
	outside := object{"name": text(composite, "metadata", "name") + "-" + child, "namespace": namespace}
	manifest := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": outside, "data": data}
	return object{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
		"kind":       "Object",
		"metadata":   metadata,
		"spec": object{
			"providerConfigRef": object{"kind": "ClusterProviderConfig", "name": "cloud"},
			"forProvider":       object{"manifest": manifest},
		},
	}
}

// ready says whether a managed resource has the condition Ready.
func ready(resource object) bool {
	status, _ := resource["status"].(object)
	conditions, _ := status["conditions"].([]any)
	for _, one := range conditions {
		if condition, _ := one.(object); condition["type"] == "Ready" {
			return condition["status"] == "True"
		}
	}
	return false
}

func names(list any) []string {
	var names []string
	items, _ := list.([]any)
	for _, item := range items {
		names = append(names, fmt.Sprint(item))
	}
	return names
}

// text is the value at a path. Empty if there is none.
func text(from object, path ...string) string {
	var value any = from
	for _, key := range path {
		inner, _ := value.(object)
		value = inner[key]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
