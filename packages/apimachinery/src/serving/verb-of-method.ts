/** Authorization verbs of requests on a single object. On collections, GET and DELETE map to other verbs. */
export const verbOfMethod: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
