import assert from "node:assert/strict";
import { test } from "node:test";
import { asCallError, asGrpcError, GrpcError, grpcCodes } from "./grpc-error.ts";

test("an error before a call was sent is Unavailable and may be repeated, one of a call is Internal and may not", () => {
  const cause = new Error("refused");
  const [before, during] = [asGrpcError(cause), asCallError(cause)];
  assert.deepEqual([before.code, before.unprocessed, before.cause], [grpcCodes.unavailable, true, cause]);
  assert.deepEqual([during.code, during.unprocessed, during.cause], [grpcCodes.internal, false, cause]);
  assert.equal(before.message, "rpc error: code = Unavailable desc = refused");
  assert.equal(asGrpcError("gone").details, "gone");
});

test("an error of gRPC stays as it is, and one of an unknown code has its number", () => {
  const own = new GrpcError(99, "odd");
  assert.equal(asGrpcError(own), own);
  assert.equal(asCallError(own), own);
  assert.equal(own.message, "rpc error: code = Code(99) desc = odd");
});
