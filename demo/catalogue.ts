/** The assortment of a shop of animals. It is a list of our own, so that a seed draws the same shop in a year as well. */

const list = (text: string): readonly string[] => text.trim().split(/,\s+/);

export const ASSORTMENTS = [
  {
    category: "Dogs",
    description: "From lap size to sofa size.",
    breeds: list(`
      Beagle, Border Collie, Boxer, Cocker Spaniel, Dachshund, Dalmatian, Golden Retriever, Greyhound, Irish Setter,
      Labrador, Papillon, Poodle, Pug, Shiba Inu, Whippet`),
  },
  {
    category: "Cats",
    description: "They choose you, not you them.",
    breeds: list(`
      Abyssinian, Bengal, Birman, British Shorthair, Burmese, Chartreux, Devon Rex, Maine Coon, Norwegian Forest Cat,
      Ragdoll, Russian Blue, Siamese, Somali`),
  },
  {
    category: "Rabbits",
    description: "Best in pairs.",
    breeds: list("Angora, Dutch, English Lop, Harlequin, Lionhead, Mini Rex, Netherland Dwarf, Polish"),
  },
  {
    category: "Rodents",
    description: "Awake when you are asleep.",
    breeds: list("Abyssinian Guinea Pig, Chinchilla, Degu, Fancy Mouse, Gerbil, Golden Hamster, Peruvian Guinea Pig"),
  },
  {
    category: "Birds",
    description: "Early risers, good singers.",
    breeds: list("Budgerigar, Canary, Cockatiel, Conure, Gouldian Finch, Lovebird, Parrotlet, Zebra Finch"),
  },
  {
    category: "Fish",
    description: "No noise, some water.",
    breeds: list("Betta, Clownfish, Discus, Goldfish, Guppy, Koi, Molly, Neon Tetra, Platy, Swordtail"),
  },
  {
    category: "Reptiles",
    description: "Calm company that likes it warm.",
    breeds: list("Bearded Dragon, Corn Snake, Crested Gecko, Hermann's Tortoise, Leopard Gecko, Veiled Chameleon"),
  },
  {
    category: "Ponies",
    description: "Bring a field.",
    breeds: list("Connemara, Dartmoor, Exmoor, Fjord, Haflinger, Icelandic, Shetland, Welsh Mountain"),
  },
] as const;

export const NAMES = list(`
  Alfie, Archie, Bailey, Basil, Bella, Biscuit, Bruno, Buddy, Caramel, Charlie, Clover, Coco, Cookie, Daisy,
  Dexter, Duke, Ella, Felix, Finn, Frida, George, Ginger, Gizmo, Hazel, Henry, Honey, Hugo, Ivy, Jasper, Juno,
  Kiwi, Lily, Lola, Lotte, Lucky, Luna, Maggie, Max, Milo, Mimi, Misty, Moritz, Nala, Nemo, Olive, Oscar, Otto,
  Peanut, Pepper, Pippa, Pixie, Poppy, Rex, Rocky, Rosie, Ruby, Rusty, Sadie, Sam, Shadow, Simba, Smokey, Stella,
  Sunny, Teddy, Tilda, Toffee, Trixie, Wanda, Willow, Winnie, Zelda, Ziggy, Zoe`);
