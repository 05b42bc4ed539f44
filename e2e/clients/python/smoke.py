"""Debian's Python client against a cluster: smoke.py KUBECONFIG NAMESPACE. Prints one line for each thing seen."""
import sys
import time

from kubernetes import client, config, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.stream import stream

kubeconfig, namespace = sys.argv[1:]
config.load_kube_config(kubeconfig)
core, apps = client.CoreV1Api(), client.AppsV1Api()

print("version", client.VersionApi().get_code().git_version)
print("nodes", len(core.list_node().items))

settings = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings", labels={"tier": "front"}), data={"a": "1"})
version = core.create_namespaced_config_map(namespace, settings).metadata.resource_version
core.patch_namespaced_config_map("settings", namespace, {"data": {"b": "2"}})
core.patch_namespaced_config_map("settings", namespace, [{"op": "remove", "path": "/data/a"}])
core.delete_namespaced_config_map("settings", namespace)
events = watch.Watch().stream(core.list_namespaced_config_map, namespace, label_selector="tier=front",
                              resource_version=version, timeout_seconds=120)
for event in events:
    print("event", event["type"], event["object"].data)
    if event["type"] == "DELETED":
        break

try:
    core.create_namespaced_pod(namespace, client.V1Pod(metadata=client.V1ObjectMeta(name="Wrong"), spec={"containers": []}))
except ApiException as err:
    print("error", err.status, err.reason)

pod = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shell"},
    "spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "main", "image": "busybox:1.35", "command": ["sh", "-c", "echo started; sleep 3600"]}]},
}
utils.create_from_dict(client.ApiClient(), pod, namespace=namespace)
for event in watch.Watch().stream(core.list_namespaced_pod, namespace, timeout_seconds=180):
    if event["object"].status.phase == "Running":
        break
for attempt in range(100):  # it runs before it has written
    log = core.read_namespaced_pod_log("shell", namespace).strip()
    if log:
        break
    time.sleep(0.2)
print("log", log)
print("exec", stream(core.connect_get_namespaced_pod_exec, "shell", namespace, command=["echo", "hello"],
                     stdout=True, stderr=True, stdin=False, tty=False).strip())

template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": "web"}), spec=client.V1PodSpec(
    termination_grace_period_seconds=0,
    containers=[client.V1Container(name="main", image="busybox:1.35", command=["sleep", "3600"])]))
apps.create_namespaced_deployment(namespace, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=client.V1DeploymentSpec(
    replicas=0, selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template)))
apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 1}})
print("scale", apps.read_namespaced_deployment_scale("web", namespace).spec.replicas)
print("deleted", core.delete_namespaced_pod("shell", namespace).metadata.name)
for name in ("one", "two", "three"):
    core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"paged": "yes"})))
first = core.list_namespaced_config_map(namespace, limit=2, label_selector="paged")
rest = core.list_namespaced_config_map(namespace, limit=2, label_selector="paged", _continue=first.metadata._continue)
print("pages", [item.metadata.name for item in first.items + rest.items], rest.metadata._continue)
print("groups", any(group.name == "apps" for group in client.ApisApi().get_api_versions().groups))
