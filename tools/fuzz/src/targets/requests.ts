/** Input that the API server reads before a client is authenticated. */
import assert from "node:assert/strict";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { unescapeExtraKey } from "@coxswain/apimachinery/serving/authentication/header-values";
import { deleteOptions, listOptions, listRequest, writeOptions } from "@coxswain/apiserver/handlers/options";
import { requestTimeoutMs } from "@coxswain/apiserver/request/deadline";
import { parseRequestInfo, queryOf } from "@coxswain/apiserver/request/request-info";
import { parseTraceparent } from "@coxswain/apiserver/request/trace";
import { splitServiceAccountUsername } from "@coxswain/apiserver/request/user-names";
import { decodeContinueToken, encodeContinueToken } from "@coxswain/apiserver/storage/continue-token";
import type { Target } from "../target.ts";

export const targets: readonly Target[] = [
  {
    name: "path",
    seeds: [
      "/apis/apps/v1/namespaces/web/deployments/a/status?watch=true",
      "/api/v1/watch/pods",
      "/api/v1/namespaces/a/pods/b/proxy/x/../y",
      "/healthz",
      "/api/v1/nodes/%61%2f?fieldSelector=metadata.name%3Da",
    ],
    dictionary: ["/namespaces/", "/proxy/", "/watch/", "%2f", "%", "//", "?", "/.."],
    declares: [Error, URIError],
    run(input) {
      const url = input.toString("latin1");
      for (const method of ["GET", "POST", "DELETE"]) {
        const { parts } = parseRequestInfo(method, url);
        assert.ok(parts.every((part) => typeof part === "string"));
      }
    },
  },
  {
    name: "query",
    seeds: [
      "?limit=5&continue=a&labelSelector=a%3Db&fieldSelector=metadata.name%3Da&resourceVersion=5&resourceVersionMatch=Exact",
      "?dryRun=All&fieldManager=a&force=true&fieldValidation=Strict",
      "?gracePeriodSeconds=0&propagationPolicy=Orphan&timeoutSeconds=-1&watch=1",
      "?timeout=1h&pretty",
    ],
    dictionary: [
      "&",
      "=",
      "%",
      ";",
      "limit=",
      "timeout=",
      "resourceVersion=",
      "resourceVersionMatch=NotOlderThan",
      "continue=",
      "watch=true",
    ],
    declares: [StatusError],
    run(input) {
      const query = queryOf(`/${input.toString("latin1")}`);
      const answers = [
        () => listRequest(listOptions(query), new AbortController().signal, true, true),
        () => writeOptions(query, "PatchOptions", true),
        () => deleteOptions(query, undefined),
        () => requestTimeoutMs(query.get("timeout"), 60_000),
      ].map((read) => {
        try {
          return void read();
        } catch (err) {
          return err;
        }
      });
      const refusals = answers.filter((answer) => answer !== undefined);
      if (refusals.length > 0) throw refusals.find((err) => !(err instanceof StatusError)) ?? refusals[0];
    },
  },
  {
    name: "continue-token",
    seeds: [
      encodeContinueToken({ start: "web/pod-7\0", revision: 1234 }),
      Buffer.from('{"v":"meta.k8s.io/v1","rv":-1,"start":"a/../b"}').toString("base64url"),
    ],
    run(input) {
      const token = decodeContinueToken(input.toString());
      assert.deepEqual(decodeContinueToken(encodeContinueToken(token)), token);
    },
  },
  {
    name: "continue-token-json",
    seeds: ['{"v":"meta.k8s.io/v1","rv":1234,"start":"web/pod-7"}'],
    dictionary: ['"start":"../', '"rv":1e3', '"rv":9007199254740993', "null", "\\u0000"],
    run: (input) => void decodeContinueToken(input.toString("base64url")),
  },
  {
    name: "headers",
    seeds: ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "example.com%2fkey", "system:serviceaccount:a:b"],
    dictionary: ["%", "-", ":", "%2"],
    run(input) {
      const text = input.toString("latin1");
      parseTraceparent(text);
      unescapeExtraKey(text);
      splitServiceAccountUsername(text);
    },
  },
];
