import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { aConfigMap, startShared, type TestServer } from "./testing.ts";

/** Rare requests. All expected responses were observed from kube-apiserver, including 500 without a reason. */

const maps = "/api/v1/namespaces/default/configmaps";
const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const deployment = "/apis/apps/v1/namespaces/default/deployments/shown";
const priorityClasses = "/apis/scheduling.k8s.io/v1/priorityclasses";
const wanted = (as: string) => ({ accept: `application/json;as=${as};g=meta.k8s.io;v=v1` });

describe("unusual requests", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
    await server.request("POST", maps, aConfigMap("kept"));
    await server.request("PUT", `${leases}/kept`, aLease("kept"));
    await server.request("POST", deployment.replace("/shown", ""), {
      metadata: { name: "shown" },
      spec: {
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      },
    });
  });
  after(() => server.stop());

  const aLease = (name: string, resourceVersion?: string) => ({
    metadata: { name, ...(resourceVersion !== undefined && { resourceVersion }) },
  });
  const inRegistry = (of: "one" | "collection") =>
    of === "one"
      ? 'in scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
      : 'in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"';

  test("a path that is no UTF-8 names nothing; parameters that Go cannot read are not there", async () => {
    assert.equal((await server.request("GET", `${maps}/%ff`)).code, 404);
    for (const query of ["labelSelector=%zz", "limit=x;continue=y"]) {
      const { code, body } = await server.request("GET", `${maps}?${query}&fieldSelector=metadata.name%3Dkept`);
      assert.equal(code, 200);
      assert.deepEqual(
        body.items.map((map: { metadata: { name: string } }) => map.metadata.name),
        ["kept"],
      );
    }
  });

  test("pages and aggregated discovery ignore the method; routes do not", async () => {
    const reported = ["/", "/apis", "/apis/", "/apis/apps"];
    for (const path of reported)
      for (const method of ["HEAD", "POST", "DELETE"]) assert.equal((await server.request(method, path)).code, 200);
    const routes = ["/api", "/api/v1", "/apis/apps/v1", "/version", "/.well-known/openid-configuration", "/openid/v1/jwks"];
    for (const path of routes) {
      const { code, body } = await server.request("POST", path);
      assert.deepEqual([code, body.reason, body.details], [405, "MethodNotAllowed", {}], path);
      assert.equal((await server.request("HEAD", path)).code, 405);
    }
  });

  test("a resource without a rule for names accepts every name that is one segment of a path", async () => {
    const event = { involvedObject: { kind: "X", namespace: "default" } };
    const events = "/api/v1/namespaces/default/events";
    for (const [path, fields] of [
      [events, event],
      ["/apis/policy/v1/namespaces/default/poddisruptionbudgets", { spec: { minAvailable: 1 } }],
    ] as const) {
      const write = (metadata: object) => server.request("POST", `${path}?dryRun=All`, { metadata, ...fields });
      assert.equal((await write({ name: "system:Some one!" })).code, 201, path);
      assert.equal((await write({ generateName: "Bogus!" })).code, 201);
      assert.match((await write({ name: "a%b" })).body.message, /metadata\.name: Invalid value: "a%b": may not contain '%'$/);
    }
  });

  test("events of events.k8s.io are selected by its own names of fields", async () => {
    const events = (query: string) => server.request("GET", `/apis/events.k8s.io/v1/events?fieldSelector=${query}`);
    assert.equal((await events("regarding.kind%3DPod,reportingController%3Dx,reason%3Dy,type%3DNormal")).code, 200);
    for (const field of ["involvedObject.kind", "reportingComponent", "source"]) {
      const { code, body } = await events(`${field}%3Dx`);
      assert.deepEqual([code, body.message], [400, `field label not supported: ${field}`]);
    }
  });

  test("a scale is of the object that it names", async () => {
    const scale = async (method: string, body: object, headers = {}) =>
      server.request(method, `${deployment}/scale?dryRun=All`, body, headers);
    const merge = { "content-type": "application/merge-patch+json" };
    const renamed = await scale("PATCH", { metadata: { name: "other" }, spec: { replicas: 3 } }, merge);
    assert.equal(renamed.body.message, "the name of the object (other) does not match the name on the URL (shown)");
    const other = await scale("PUT", { metadata: { name: "shown", uid: "x" }, spec: { replicas: 3 } });
    assert.equal(other.code, 409);
    assert.match(other.body.message, /Precondition failed: UID in precondition: x, UID in object meta: /);
  });

  test("operations on a pod are held to their options", async () => {
    const pods = "/api/v1/namespaces/default/pods";
    await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
    await server.request("POST", pods, { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } });
    const evict = (deleteOptions: object) =>
      server.request("POST", `${pods}/p/eviction?dryRun=All`, { metadata: { name: "p" }, deleteOptions });
    const doubtful = await evict({ dryRun: ["Some"] });
    assert.deepEqual(
      [doubtful.code, doubtful.body.message],
      [500, "Non-matching dry-run options in request and content: [All] and [Some]"],
    );
    assert.match(
      (await evict({ propagationPolicy: "Odd" })).body.message,
      /^DeleteOptions\.meta\.k8s\.io "" is invalid: propagationPolicy: /,
    );
    assert.equal((await evict({ dryRun: ["All"] })).code, 201);

    const log = await server.request("GET", `${pods}/gone/log?sinceTime=bogus`);
    assert.deepEqual(
      [log.code, log.body.message],
      [400, 'parsing time "bogus" as "2006-01-02T15:04:05Z07:00": cannot parse "bogus" as "2006"'],
    );
    for (const path of ["log/x", "exec/x", "attach/x"])
      assert.equal((await server.request("GET", `${pods}/p/${path}`)).code, 404);

    const bind = (path: string, name: string) =>
      server.request("POST", path, { metadata: { name }, target: { kind: "Node", name: "n" } });
    assert.equal((await bind("/api/v1/namespaces/default/bindings", "")).body.message, "Name parameter required.");
    const bound = await bind(`${pods}/p/binding`, "p");
    assert.deepEqual([bound.code, bound.body.kind, bound.body.status, bound.body.code], [201, "Status", "Success", 201]);
    assert.equal(
      (await bind(`${pods}/p/binding`, "p")).body.message,
      'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"',
    );
    // The node with that name, reported as the object of the request.
    assert.equal((await server.request("GET", `${pods}/p/log`)).body.message, 'pods "n" not found');
  });

  test("a node without an address cannot be reached, which is no bad request", async () => {
    await server.request("POST", "/api/v1/nodes", { metadata: { name: "nowhere" } });
    const { code, body } = await server.request("GET", "/api/v1/nodes/nowhere/proxy/");
    assert.deepEqual([code, body.reason, body.message], [500, undefined, "no preferred addresses found; known addresses: []"]);
  });

  test("the aggregator negotiates by itself; the version is JSON alone", async () => {
    const html = await server.request("GET", "/apis", undefined, { accept: "text/html" });
    assert.equal(html.code, 406);
    assert.match(html.body.message, /^only the following media types are accepted: application\/json, application\/yaml,/);
    assert.equal((await server.request("GET", "/apis/apps", undefined, { accept: "application/*" })).code, 200);
    for (const [path, accept] of [
      ["/version", "application/yaml"],
      ["/version", "application/vnd.kubernetes.protobuf"],
      ["/api", "application/*"],
    ] as const) {
      const refused = await server.request("GET", path, undefined, { accept });
      assert.equal(refused.code, 406, path);
      assert.match(refused.raw.toString(), /406: Not Acceptable/);
    }
  });

  test("a legacy path without a resource is the server's failure, in plain text", async () => {
    const { code, raw } = await server.request("GET", "/api/v1/watch");
    assert.equal(code, 500);
    assert.equal(
      raw.toString(),
      'Internal Server Error: "/api/v1/watch": failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch\n',
    );
  });

  test("a patch of an unknown type is 415, and 406 when nothing was sent", async () => {
    const type = { "content-type": "text/plain" };
    const sent = { ...type, "content-length": "2" };
    assert.equal((await server.request("PATCH", `${maps}/kept`, {}, sent)).body.message, "415: Unsupported Media Type");
    assert.equal((await server.request("PATCH", `${maps}/kept`, undefined, type)).body.message, "406: Not Acceptable");
  });

  test("PUT on the status of a missing service creates the service, without status and address", async () => {
    const service = {
      metadata: { name: "by-status" },
      spec: { ports: [{ port: 80 }] },
      status: { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } },
    };
    const path = "/api/v1/namespaces/default/services/by-status";
    const created = await server.request("PUT", `${path}/status`, service);
    assert.equal(created.code, 201, created.raw.toString());
    assert.deepEqual(created.body.status, { loadBalancer: {} });
    assert.equal(created.body.spec.clusterIP, undefined);
    assert.equal((await server.request("GET", path)).code, 200);
  });

  for (const { resource, kind } of [
    { resource: "pods", kind: "Pod" },
    { resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim" },
    { resource: "resourcequotas", kind: "ResourceQuota" },
    { resource: "replicationcontrollers", kind: "ReplicationController" },
  ]) {
    test(`PUT on the status of ${resource} that are not there is 404`, async () => {
      const path = `/api/v1/namespaces/default/${resource}/absent/status`;
      const { code, body } = await server.request("PUT", path, { kind, apiVersion: "v1", metadata: { name: "absent" } });
      assert.equal(code, 404);
      assert.equal(body.message, `${resource} "absent" not found`);
    });
  }

  for (const { path, kind, apiVersion } of [
    { path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets", kind: "PodDisruptionBudget", apiVersion: "policy/v1" },
    { path: "/apis/storage.k8s.io/v1/volumeattachments", kind: "VolumeAttachment", apiVersion: "storage.k8s.io/v1" },
  ]) {
    test(`the status of a ${kind} wants a resourceVersion, as the object does`, async () => {
      const spec =
        kind === "VolumeAttachment"
          ? { attacher: "a", nodeName: "n", source: { persistentVolumeName: "v" } }
          : { minAvailable: 1 };
      const object = { kind, apiVersion, metadata: { name: "versioned" }, spec };
      assert.equal((await server.request("POST", path, object)).code, 201);
      for (const below of ["", "/status"]) {
        const { code, body } = await server.request("PUT", `${path}/versioned${below}`, object);
        assert.equal(code, 422);
        assert.match(body.message, /metadata.resourceVersion: Invalid value: 0x0: must be specified for an update$/);
      }
    });
  }

  test("a system priority class may not be deleted by its name, not even when it is gone, but with its collection", async () => {
    const name = "system-node-critical";
    const refused = await server.request("DELETE", `${priorityClasses}/${name}`);
    const text = `priorityclasses.scheduling.k8s.io "${name}" is forbidden: this is a system priority class and cannot be deleted`;
    assert.deepEqual([refused.code, refused.body.message], [403, text]);
    const all = await server.request("DELETE", priorityClasses);
    assert.equal(all.code, 200, all.raw.toString());
    assert.ok(all.body.items.some((item: { metadata: { name: string } }) => item.metadata.name === name));
    assert.equal((await server.request("GET", `${priorityClasses}/${name}`)).code, 404);
    assert.equal((await server.request("DELETE", `${priorityClasses}/${name}`)).code, 403);
  });

  test("answers that are not stored can be wanted as their metadata, and as no list or table", async () => {
    for (const method of ["GET", "PUT"]) {
      const body = method === "PUT" ? { metadata: { name: "shown" }, spec: { replicas: 1 } } : undefined;
      const shown = await server.request(method, `${deployment}/scale`, body, wanted("PartialObjectMetadata"));
      assert.equal(shown.code, 200, shown.raw.toString());
      assert.deepEqual(Object.keys(shown.body), ["kind", "apiVersion", "metadata"]);
      assert.partialDeepStrictEqual(shown.body, { kind: "PartialObjectMetadata", metadata: { name: "shown" } });
    }
    const asList = await server.request("GET", `${deployment}/scale`, undefined, wanted("PartialObjectMetadataList"));
    assert.deepEqual(
      [asList.code, asList.body.message],
      [406, "you requested PartialObjectMetadataList, but the requested object is not a list (*autoscaling.Scale)"],
    );
    assert.equal((await server.request("GET", `${deployment}/scale`, undefined, wanted("Table"))).code, 406);

    const review = { spec: { resourceAttributes: { verb: "get", resource: "pods" } } };
    const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const reviewed = await server.request("POST", reviews, review, wanted("PartialObjectMetadata"));
    assert.deepEqual([reviewed.code, reviewed.body.kind], [201, "PartialObjectMetadata"]);
    assert.equal((await server.request("POST", reviews, review, wanted("Table"))).code, 406);
  });

  for (const { of, body, text } of [
    { of: "one", body: { apiVersion: "nope/v1", kind: "DeleteOptions" }, text: undefined },
    { of: "one", body: { apiVersion: "meta.k8s.io/v1", kind: "DeleteOptions" }, text: undefined },
    { of: "one", body: "null", text: undefined },
    { of: "one", body: { apiVersion: "v1", kind: "Pod" }, text: 'no kind "Pod" is registered for version "v1"' },
    { of: "one", body: { apiVersion: "a/b/c" }, text: "unexpected GroupVersion string: a/b/c" },
    {
      of: "one",
      body: { apiVersion: "v1", kind: "Status" },
      text: "converting (v1.Status) to (v1.DeleteOptions): unknown conversion",
    },
    { of: "one", body: "{", text: "couldn't get version/kind; json parse error: unexpected end of JSON input" },
    {
      of: "one",
      body: { apiVersion: 5 },
      text: "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string",
    },
    {
      of: "one",
      body: { gracePeriodSeconds: "soon" },
      text: "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    },
    { of: "collection", body: { apiVersion: "apps/v1", kind: "DeleteOptions" }, text: undefined },
    { of: "collection", body: { kind: "DeleteOptions" }, text: undefined },
    {
      of: "collection",
      body: { apiVersion: "nope/v1", kind: "DeleteOptions" },
      text: 'no kind "DeleteOptions" is registered for version "nope/v1"',
    },
    {
      of: "collection",
      body: { apiVersion: "meta.k8s.io/v1", kind: "DeleteOptions" },
      text: 'no kind "DeleteOptions" is registered for version "meta.k8s.io/v1"',
    },
    {
      of: "collection",
      body: { apiVersion: "v1", kind: "Pod" },
      text: "converting (v1.Pod) to (v1.DeleteOptions): unknown conversion",
    },
  ] as const) {
    test(`DELETE of ${of} with the body ${JSON.stringify(body)} is ${text === undefined ? "taken" : "500"}`, async () => {
      const path = of === "one" ? `${maps}/kept?dryRun=All` : `${maps}?labelSelector=none=such`;
      const answer = await server.request("DELETE", path, body);
      if (text === undefined) {
        assert.equal(answer.code, 200, answer.raw.toString());
        if (of === "one") await server.request("POST", maps, aConfigMap("kept")); // the body takes precedence over the query
        return;
      }
      const whole = text.startsWith("no kind") ? `${text} ${inRegistry(of)}` : text;
      assert.deepEqual(answer.body, {
        ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" },
        ...{ message: whole, code: 500 },
      });
    });
  }

  const long = "x".repeat(129);
  for (const { method, path, headers, code } of [
    // An update validates its options before its body, a creation after it.
    { method: "PUT", path: `${maps}/kept?fieldManager=${long}`, headers: { "content-type": "text/plain" }, code: 422 },
    { method: "PUT", path: `${deployment}/scale?dryRun=x`, headers: { "content-type": "text/plain" }, code: 422 },
    { method: "POST", path: `${maps}?fieldManager=${long}`, headers: { "content-type": "text/plain" }, code: 415 },
    // Accept is checked before the query.
    { method: "GET", path: `${maps}?labelSelector=a%3D%3D%3D`, headers: { accept: "application/json;as=No;g=x;v=y" }, code: 406 },
    { method: "GET", path: `${maps}?timeout=-1s`, headers: {}, code: 200 },
    { method: "GET", path: `${maps}?timeout=1`, headers: {}, code: 400 },
    { method: "HEAD", path: "/api/v1/namespaces/default/pods/none/attach", headers: {}, code: 405 },
    { method: "OPTIONS", path: "/api/v1/namespaces/default/pods/none/log", headers: {}, code: 405 },
    { method: "HEAD", path: "/api/v1/namespaces/default/pods/none/proxy", headers: {}, code: 404 },
    { method: "GET", path: `/${maps}`, headers: {}, code: 404 },
    { method: "GET", path: "//", headers: {}, code: 404 },
    { method: "GET", path: "/apis//", headers: {}, code: 404 },
    { method: "GET", path: `${deployment}/scale/`, headers: {}, code: 200 },
    { method: "GET", path: `${deployment}/scale/more`, headers: {}, code: 404 },
    { method: "GET", path: "/openapi/v2/", headers: {}, code: 404 },
  ] as { method: string; path: string; headers: Record<string, string>; code: number }[]) {
    test(`${method} ${path.replace(long, "129 bytes")} ${JSON.stringify(headers)} is ${code}`, async () => {
      const body = method === "PUT" || method === "POST" ? "x" : undefined;
      const answer = await server.request(method, path, body, headers);
      assert.equal(answer.code, code, answer.raw.toString());
    });
  }

  const endpoints = "/api/v1/namespaces/default/endpoints";
  for (const { what, subsets, path, code, message } of [
    { what: "that is not there", subsets: undefined, path: "none", code: 404, message: 'services "none" not found' },
    { what: "without endpoints", subsets: [], path: "empty", code: 503, message: 'no endpoints available for service "empty"' },
    {
      what: "whose endpoint is no pod's",
      subsets: [{ addresses: [{ ip: "192.0.2.77" }], ports: [{ port: 80 }] }],
      path: "foreign",
      code: 503,
      message: 'no endpoints available for service "foreign"',
    },
    {
      what: "whose endpoint names a pod with another address",
      subsets: [
        {
          addresses: [{ ip: "192.0.2.77", targetRef: { kind: "Pod", namespace: "default", name: "none" } }],
          ports: [{ name: "web", port: 80 }],
        },
      ],
      path: "borrowed:web",
      code: 503,
      message: 'no endpoints available for service "borrowed:web"',
    },
  ]) {
    test(`a proxy to a service ${what} is ${code}`, async () => {
      const name = path.split(":")[0] as string;
      if (subsets !== undefined) await server.request("POST", endpoints, { metadata: { name }, subsets });
      const answer = await server.request("GET", `/api/v1/namespaces/default/services/${path}/proxy/`);
      assert.deepEqual([answer.code, answer.body.message], [code, message]);
    });
  }

  const fault = (value: string, why = "invalid syntax") => `strconv.ParseUint: parsing "${value}": ${why}`;
  for (const { path, code, message } of [
    { path: `${maps}?resourceVersion=abc`, code: 500, message: `resourceVersion: Invalid value: "abc": ${fault("abc")}` },
    { path: `${maps}/kept?resourceVersion=-1`, code: 500, message: `resourceVersion: Invalid value: "-1": ${fault("-1")}` },
    { path: `${maps}?watch=1&resourceVersion=abc`, code: 500, message: `resourceVersion: Invalid value: "abc": ${fault("abc")}` },
    // Not answered by the cache: etcd's store has its own error texts.
    {
      path: `${maps}?limit=1&resourceVersion=abc`,
      code: 400,
      message: `invalid resource version: resourceVersion: Invalid value: "abc": ${fault("abc")}`,
    },
    {
      path: "/api/v1/namespaces/default/events?resourceVersion=abc",
      code: 400,
      message: `invalid resource version: resourceVersion: Invalid value: "abc": ${fault("abc")}`,
    },
    { path: `${deployment}/scale?resourceVersion=abc`, code: 404, message: 'deployments/scale.apps "shown" not found' },
  ]) {
    test(`GET ${path} is ${code}`, async () => {
      const answer = await server.request("GET", path);
      assert.deepEqual([answer.code, answer.body.message], [code, message]);
    });
  }

  for (const { name, version, code, message } of [
    { name: "kept", version: "abc", code: 500, message: fault("abc") },
    { name: "kept", version: "99999999999999999999", code: 500, message: fault("99999999999999999999", "value out of range") },
    { name: "new", version: "abc", code: 500, message: fault("abc") },
    { name: "new", version: "5", code: 201, message: undefined },
  ]) {
    test(`PUT of a lease that is ${name === "new" ? "not " : ""}there with resourceVersion ${version} is ${code}`, async () => {
      const answer = await server.request("PUT", `${leases}/${name}`, aLease(name, version));
      assert.deepEqual([answer.code, answer.body.message], [code, message]);
    });
  }
});
