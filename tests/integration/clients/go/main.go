// The Go clients' users: cases that run one after another against the cluster of $KUBECONFIG, and a report of them.
//
// Each case has a namespace of its own and says what is wrong by panicking. The report is one JSON object in the last
// line, in the form of the Python scripts beside this folder.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// world is what a case is given.
type world struct {
	ctx       context.Context
	config    *rest.Config
	typed     *kubernetes.Clientset // speaks protobuf where it can
	namespace string
	left      map[string]any
}

type caseOf struct {
	name string
	run  func(*world)
}

var cases = []caseOf{
	{"typed_objects_in_protobuf", typedObjectsInProtobuf},
	{"every_kind_of_a_manifest_in_protobuf", everyKindOfAManifest},
	{"conflicts_are_retried", conflictsAreRetried},
	{"apply_configurations", applyConfigurations},
	{"status_scale_and_tokens", statusScaleAndTokens},
	{"pages", pages},
	{"informers_use_watch_list", informersUseWatchList},
	{"a_watch_resumes", aWatchResumes},
	{"definitions_dynamic_and_metadata", definitionsDynamicAndMetadata},
	{"discovery_and_openapi", discoveryAndOpenAPI},
	{"leaders_are_elected", leadersAreElected},
	{"an_operator_on_controller_runtime", anOperatorOnControllerRuntime},
}

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.QPS = -1
	passed, failures, left := []string{}, map[string]string{}, map[string]any{}
	for _, each := range cases {
		if len(os.Args) > 1 && !strings.Contains(each.name, os.Args[1]) {
			continue
		}
		if told := try(each, config, left); told == "" {
			passed = append(passed, each.name)
		} else {
			failures[each.name] = told
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"passed": passed, "failures": failures, "left": left}))
}

func try(each caseOf, config *rest.Config, left map[string]any) (told string) {
	defer func() {
		if wrong := recover(); wrong != nil {
			told = fmt.Sprintf("%v\n%s", wrong, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	spoken := rest.CopyConfig(config)
	spoken.ContentType = protobuf
	spoken.AcceptContentTypes = protobuf + ",application/json"
	given := &world{ctx: ctx, config: config, typed: kubernetes.NewForConfigOrDie(spoken), left: left}
	made, err := given.typed.CoreV1().Namespaces().Create(
		ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}, metav1.CreateOptions{})
	must(err)
	given.namespace = made.Name
	each.run(given)
	return ""
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(right bool, format string, args ...any) {
	if !right {
		panic(fmt.Sprintf(format, args...))
	}
}

func until(ctx context.Context, what string, look func() bool) {
	for !look() {
		select {
		case <-ctx.Done():
			panic("it never happened: " + what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func pointer[T any](value T) *T { return &value }
