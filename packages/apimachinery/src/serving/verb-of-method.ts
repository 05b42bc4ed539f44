/** The verb of a request on one object, as authorizers know it; of a collection `get` and `delete` mean more. */
export const verbOfMethod: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
