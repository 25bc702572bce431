// Plays the providers that Cluster API needs, after its contracts: an infrastructure whose machines are nothing but Nodes,
// and a control plane that is there already. The cluster that they make is the one that they run in.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	infrastructure = "infrastructure.cluster.x-k8s.io"
	controlPlane   = "controlplane.cluster.x-k8s.io"
	finalizer      = "played.infrastructure.cluster.x-k8s.io"
	// How often we look for what we do not watch.
	again = 200 * time.Millisecond
)

type object = unstructured.Unstructured

// A step towards what a contract asks for. It makes one write at most, and that write is what makes it be called again.
type step func(context.Context, *object) (reconcile.Result, error)

type player struct {
	client.Client
	live       client.Reader
	host       string
	port       int64
	boot       time.Duration
	authority  []byte
	kubeconfig []byte
}

func main() {
	role := flag.String("role", "", "infrastructure or control-plane")
	host := flag.String("host", "127.0.0.1", "address of the API server of all clusters")
	port := flag.Int64("port", 6443, "port of that API server")
	boot := flag.Duration("boot", time.Second, "how long a machine takes to boot")
	authority := flag.String("authority", "", "file with the certificate of that API server's authority")
	kubeconfig := flag.String("workload-kubeconfig", "", "file with the kubeconfig of all clusters")
	flag.Parse()
	klog.SetOutput(os.Stderr)
	ctrl.SetLogger(klog.Background())

	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	must(err)
	p := &player{Client: manager.GetClient(), live: manager.GetAPIReader(), host: *host, port: *port, boot: *boot}
	switch *role {
	case "infrastructure":
		p.play(manager, infrastructure, "PlayedCluster", p.cluster)
		p.play(manager, infrastructure, "PlayedMachine", p.machine)
	case "control-plane":
		p.authority, err = os.ReadFile(*authority)
		must(err)
		p.kubeconfig, err = os.ReadFile(*kubeconfig)
		must(err)
		p.play(manager, controlPlane, "PlayedControlPlane", p.controlPlane)
	default:
		klog.Fatalf("--role=%q is neither infrastructure nor control-plane", *role)
	}
	must(manager.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}

func (p *player) play(manager ctrl.Manager, group, kind string, step step) {
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	watched := &object{}
	watched.SetGroupVersionKind(gvk)
	look := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		found := &object{}
		found.SetGroupVersionKind(gvk)
		if err := p.Get(ctx, request.NamespacedName, found); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		result, err := step(ctx, found)
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: again}, nil
		}
		return result, err
	}
	must(ctrl.NewControllerManagedBy(manager).For(watched).Complete(reconcile.Func(look)))
}

// Keeps an object from going before we know of it. Says whether that is all that there is to do for now.
func (p *player) hold(ctx context.Context, of *object) (bool, error) {
	if !of.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(of, finalizer) {
			return true, client.IgnoreNotFound(p.Update(ctx, of))
		}
		return true, nil
	}
	if controllerutil.AddFinalizer(of, finalizer) {
		return true, p.Update(ctx, of)
	}
	return false, nil
}

// An infrastructure cluster has an endpoint, which the Cluster copies.
func (p *player) cluster(ctx context.Context, cluster *object) (reconcile.Result, error) {
	if done, err := p.hold(ctx, cluster); done || err != nil {
		return reconcile.Result{}, err
	}
	if host, _, _ := unstructured.NestedString(cluster.Object, "spec", "controlPlaneEndpoint", "host"); host == "" {
		endpoint := map[string]any{"host": p.host, "port": p.port}
		must(unstructured.SetNestedMap(cluster.Object, endpoint, "spec", "controlPlaneEndpoint"))
		return reconcile.Result{}, p.Update(ctx, cluster)
	}
	return p.done(ctx, cluster, "provisioned", nil)
}

// An infrastructure machine boots once there is bootstrap data for it, and becomes a Node.
func (p *player) machine(ctx context.Context, machine *object) (reconcile.Result, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.GetName()}}
	if !machine.GetDeletionTimestamp().IsZero() {
		if err := p.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	if done, err := p.hold(ctx, machine); done || err != nil {
		return reconcile.Result{}, err
	}
	owner := metav1.GetControllerOf(machine)
	if owner == nil {
		return reconcile.Result{}, nil
	}
	of := &object{}
	of.SetAPIVersion(owner.APIVersion)
	of.SetKind(owner.Kind)
	key := client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}
	if err := p.Get(ctx, key, of); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	data, _, _ := unstructured.NestedString(of.Object, "spec", "bootstrap", "dataSecretName")
	if rest := time.Until(machine.GetCreationTimestamp().Add(p.boot)); data == "" || rest > 0 {
		return reconcile.Result{RequeueAfter: max(again, rest)}, nil
	}
	id := "played:///" + machine.GetNamespace() + "/" + machine.GetName()
	if known, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID"); known == "" {
		if err := p.join(ctx, node, id); err != nil {
			return reconcile.Result{}, err
		}
		must(unstructured.SetNestedField(machine.Object, id, "spec", "providerID"))
		return reconcile.Result{}, p.Update(ctx, machine)
	}
	addresses := []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}}
	return p.done(ctx, machine, "provisioned", map[string]any{"addresses": addresses})
}

// What the kubelet of a machine does.
func (p *player) join(ctx context.Context, node *corev1.Node, id string) error {
	node.Spec.ProviderID = id
	if err := p.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	// Others write to it at once.
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	node.Status.Conditions = nil
	status := map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False",
		corev1.NodeDiskPressure: "False", corev1.NodePIDPressure: "False",
	}
	for kind, value := range status {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: value, Reason: "Played", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
		})
	}
	return p.Status().Update(ctx, node)
}

// A control plane has an authority and a kubeconfig in Secrets.
func (p *player) controlPlane(ctx context.Context, plane *object) (reconcile.Result, error) {
	if done, err := p.hold(ctx, plane); done || err != nil {
		return reconcile.Result{}, err
	}
	cluster := plane.GetLabels()["cluster.x-k8s.io/cluster-name"]
	// The Cluster gives both, once it has found what refers to it.
	if len(plane.GetOwnerReferences()) == 0 || cluster == "" {
		return reconcile.Result{}, nil
	}
	// Nobody signs anything: the certificate will do for the key.
	secrets := map[string]map[string][]byte{
		"ca":         {"tls.crt": p.authority, "tls.key": p.authority},
		"kubeconfig": {"value": p.kubeconfig},
	}
	for purpose, data := range secrets {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: plane.GetNamespace(), Name: cluster + "-" + purpose,
				Labels:          map[string]string{"cluster.x-k8s.io/cluster-name": cluster},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(plane, plane.GroupVersionKind())},
			},
			Type: "cluster.x-k8s.io/secret",
			Data: data,
		}
		if err := p.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return reconcile.Result{}, err
		}
	}
	version, _, _ := unstructured.NestedString(plane.Object, "spec", "version")
	rest := map[string]any{"version": version, "externalManagedControlPlane": true}
	return p.done(ctx, plane, "controlPlaneInitialized", rest)
}

// Reports that an object is as its spec asks for, if it does not say so.
func (p *player) done(ctx context.Context, of *object, flag string, rest map[string]any) (reconcile.Result, error) {
	observed, _, _ := unstructured.NestedInt64(of.Object, "status", "observedGeneration")
	if observed == of.GetGeneration() {
		return reconcile.Result{}, nil
	}
	conditions, _, _ := unstructured.NestedSlice(of.Object, "status", "conditions")
	since := time.Now().UTC().Format(time.RFC3339)
	if len(conditions) > 0 {
		since, _ = conditions[0].(map[string]any)["lastTransitionTime"].(string)
	}
	status := map[string]any{
		"observedGeneration": of.GetGeneration(),
		"initialization":     map[string]any{flag: true},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Played", "message": "",
			"observedGeneration": of.GetGeneration(), "lastTransitionTime": since,
		}},
	}
	for key, value := range rest {
		status[key] = value
	}
	of.Object["status"] = status
	return reconcile.Result{}, p.Status().Update(ctx, of)
}
