import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import {
  endpointSlices,
  ingressClasses,
  ingresses,
  nodes,
  secrets,
  services,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startIngress } from "@coxswain/cluster-services/ingress/part";
import { startAddOns } from "./add-ons.ts";

const rule = (host: string, service: string) => ({
  host,
  http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: service, port: { number: 80 } } } }] },
});

test("an Ingress gets the default class, the node's address and events, and its certificate is served", async (t) => {
  const addOns = await startAddOns(t);
  const { server, client, clock, log, kubectl, create } = addOns;
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } };
  await create(nodes, node);
  const status = { addresses: [{ type: "InternalIP", address: "192.0.2.11" }] };
  await server.client.patch<Node>(nodes, { name: "n1", subresource: "status" }, { type: "merge", body: { status } });
  const ending = new AbortController();
  const [httpPort, httpsPort] = [await freePort(), await freePort()];
  const context = {
    ...addOns,
    nodeName: "n1",
    turns: new Turns(),
    signal: ending.signal,
    flags: {
      "ingress-http-port": httpPort,
      "ingress-https-port": httpsPort,
      "ingress-response-timeout": 5_000,
      "ingress-idle-timeout": 60_000,
      "ingress-max-body-bytes": 0,
      "ingress-connections-per-client": 100,
    } as never,
    recorder: newEventRecorder({ client, component: "ingress", log, clock }),
    fail(err: unknown) {
      throw err;
    },
  };
  // Beside another part that looks slices up by Service too; and it fails once, as when a program still has the port.
  addOns.informers.for<EndpointSlice>(endpointSlices).addIndex("service", () => []);
  const taken = createServer().listen(httpPort);
  await once(taken, "listening");
  await assert.rejects(startIngress(context), /cannot listen on port/);
  taken.close();
  await once(taken, "close");
  const part = await startIngress(context);
  t.after(() => ending.abort());
  await waitFor(async () => (await server.client.list<IngressClass>(ingressClasses)).items.length === 1, {
    what: "the IngressClass",
  });

  const ca = await newCa({ commonName: "ca" });
  const { certPem, keyPem } = await newCertificate({ commonName: "web", dnsNames: ["web.test"], usages: ["server"], ca });
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const metadata = { namespace: "default", name: "web" };
  await create(secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
  });
  await create(services, { apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 80 }] } });
  await create(ingresses, {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata,
    spec: {
      rules: [rule("web.test", "web"), rule("absent.test", "absent")],
      tls: [
        { hosts: ["web.test"], secretName: "web" },
        { hosts: ["absent.test"], secretName: "absent" },
      ],
    },
  });
  const curl = async (url: string, ...args: string[]): Promise<string> => {
    const target = ["--connect-to", `${new URL(url).hostname}::127.0.0.1:${url.startsWith("https") ? httpsPort : httpPort}`];
    return (await promisify(execFile)("curl", ["-ksS", "-m", "10", ...target, ...args, url])).stdout;
  };
  // Rules are there: without endpoints it is 503, and another host 404.
  await waitFor(async () => /^503 /.test(await curl("http://web.test/")), { what: "the rules" });
  assert.match(await curl("http://other.test/"), /^404 /);
  const certificate = () => curl("https://web.test/", "-v", "--stderr", "-");
  await waitFor(async () => /subject: CN=web\n/.test(await certificate()), { what: "the certificate" });
  await waitFor(
    async () => /^web +coxswain +web\.test,absent\.test +192\.0\.2\.11 +80, 443 /m.test(await kubectl("get", "ingress")),
    {
      what: "class and address",
    },
  );
  const events = await waitFor(
    async () => {
      const text = await kubectl("describe", "ingress", "web");
      return /MissingService/.test(text) && /MissingCertificate/.test(text) ? text : undefined;
    },
    { timeoutMs: 30_000, what: "events" },
  );
  assert.match(events, /MissingService .* there is no Service default\/absent\n/);
  assert.match(events, /MissingCertificate .* there is no Secret default\/absent\n/);
  await part.check?.();

  ending.abort();
  await part.stop?.();
  assert.match(await kubectl("get", "ingress"), /^web +coxswain +web\.test,absent\.test +80, 443 /m);
});
