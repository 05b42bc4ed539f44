import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointOf } from "./endpoint.ts";

const service = { namespace: "web", name: "hook" };
for (const { name, config, url, hostPort = new URL(url).host } of [
  {
    name: "a URL",
    config: { url: "https://a.example.com/path?x=y" },
    url: "https://a.example.com/path?x=y",
    hostPort: "a.example.com:443",
  },
  { name: "a URL with a port", config: { url: "https://a.example.com:8443/" }, url: "https://a.example.com:8443/" },
  { name: "a service", config: { service }, url: "https://hook.web.svc/", hostPort: "hook.web.svc:443" },
  {
    name: "a service with port and path",
    config: { service: { ...service, port: 8443, path: "/a/b" } },
    url: "https://hook.web.svc:8443/a/b",
  },
  {
    name: "a path that looks like a query",
    config: { service: { ...service, path: "/a?b" } },
    url: "https://hook.web.svc/a%3Fb",
    hostPort: "hook.web.svc:443",
  },
  { name: "both, of which the URL counts", config: { url: "https://a/", service }, url: "https://a/", hostPort: "a:443" },
]) {
  test(`the endpoint of a webhook with ${name}`, () => {
    const located: unknown[][] = [];
    const location = { host: "10.0.0.1", port: 1 };
    const endpoint = endpointOf(config, (...args) => {
      located.push(args);
      return location;
    });
    assert.deepEqual([endpoint.url.href, endpoint.hostPort], [url, hostPort]);
    const isService = !("url" in config);
    assert.deepEqual(endpoint.locate?.(), isService ? location : undefined);
    const port = config.service !== undefined && "port" in config.service ? config.service.port : 443;
    assert.deepEqual(located, isService ? [["web", "hook", port]] : []);
  });
}

test("a webhook needs a URL or a service", () => {
  assert.throws(() => endpointOf({}, () => assert.fail()), { message: "webhook configuration must have either service or URL" });
});
