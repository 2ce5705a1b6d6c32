const { startPetstore } = require("@petstore/testing");

let petstore;
beforeAll(async () => {
  petstore = await startPetstore({ pets: 5 });
});
afterAll(() => petstore.stop());
beforeEach(() => petstore.reset());

test("there are pets to list", async () => {
  const answer = await fetch(`${petstore.url}/pets`);
  expect(await answer.json()).toHaveLength(5);
});

test("what is too many is refused, until the clock moves on", async () => {
  const busy = await startPetstore({ env: { RATE_LIMIT: "1/min" } });
  const ask = async () => (await fetch(`${busy.url}/pets`)).status;
  expect([await ask(), await ask()]).toEqual([200, 429]);
  await busy.advance(60_000);
  expect(await ask()).toBe(200);
  await busy.stop();
});
