const petstore = process.env.PETSTORE_URL ?? "http://127.0.0.1:8080";

// The page and the petstore at one address, so that neither needs CORS: RPCs and /events go on to the petstore.
export default {
  server: { proxy: { "^/(petstore\\.|events)": petstore } },
};
