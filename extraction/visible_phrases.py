"""What shops say about buying and stock, in their languages: data, and one search for all of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter

from extraction.items import Stock

# Longer texts are prose; a shop says these things briefly.
SHORT = 90
CART = """
add to cart|add to bag|add to basket|add to trolley|add to my bag|add to your bag|add to shopping|add item to|add to order|buy now|buy it now|buy this
order now|purchase now|place order|shop now|buy on|in den warenkorb|in den einkaufswagen|in den korb|jetzt kaufen|zum warenkorb hinzu|bestellen|in winkelwagen
in winkelmand|in mijn winkel|toevoegen aan|ajouter au panier|ajouter à mon panier|ajouter au sac|acheter|añadir al carrito|añadir a la cesta|añadir a la bolsa
agregar al carr|agregar a la bolsa|comprar|añadir a cesta|aggiungi al carrello|metti nel carrello|acquista|adicionar ao carrinho|adicionar à|adicionar ao
do koszyka|kup teraz|dodaj do koszyka|do košíku|přidat do|koupit|do košíka|kúpiť|lägg i varukorg|lägg i kundvagn|lägg i korg|köp nu|köp|læg i kurv|læg i indkøbs
tilføj til kurv|køb nu|legg i handle|legg i kurv|kjøp nå|kjøp|lisää ostoskoriin|lisää koriin|osta nyt|kosárba|megveszem|vásárlás|adaugă în coș|adauga in cos
adaugă în coş|cumpără|sepete ekle|satın al|hemen al|в корзину|купить|заказать|купити|до кошика|в кошик|カートに入れる|かごに入れる|カートへ|購入する|加入购物车|加入購物車
放入購物車|立即购买|立即購買|我要購買|直接購買|장바구니|구매하기|바로구매|أضف إلى|اشتري|הוסף לסל|הוספה לסל|קנה עכשיו|lisa ostukorvi|lisa korvi|osta kohe|į krepšelį|pirkti
ielikt grozā|pievienot grozam|likt grozā|pirkt|добави в|купи|u košaricu|dodaj v košarico|kupi|προσθήκη στο|αγορά|thêm vào giỏ|mua ngay|beli sekarang|tambah ke
หยิบใส่|ซื้อเลย|افزودن به سبد|خرید
"""
IN_STOCK = """
in stock|in-stock|available now|available for delivery|available online|ready to ship|ships today|ships within|usually ships|ships in|available to ship
in store now|item is available|auf lager|sofort lieferbar|sofort verfügbar|verfügbar|lieferbar|an lager|versandfertig|vorrätig|lieferzeit|en stock|disponible
expédié sous|expédition sous|livraison sous|en existencia|hay stock|disponibile|disponibilità immediata|in magazzino|pronta consegna|em estoque|em stock|disponível
op voorraad|voorradig|leverbaar|morgen in huis|dostępny|na stanie|w magazynie|na magazynie|wysyłka w|skladem|na skladě|skladom|k odeslání|i lager|finns i lager
på lager|på lager|varastossa|heti saatavilla|raktáron|készleten|elérhető|în stoc|in stoc|stokta|в наличии|есть в наличии|є в наявності|в наявності|在庫あり|在庫有
现货|有货|現貨|有貨|재고 있음|متوفر|במלאי|laos|turime|ir noliktavā|noliktavā|pieejams|saadaval|sandėlyje|наличност|в наличност|na zalihi|na zalogi|dostupno|διαθέσιμο
άμεσα|còn hàng|tersedia|มีสินค้า|موجود
"""
OUT_OF_STOCK = """
out of stock|out-of-stock|sold out|currently unavailable|temporarily unavailable|not available|unavailable|no longer available|not in stock|no stock|backordered until|listing ended|listing was ended|listing has ended|bidding has ended|auction ended|ad has expired|no longer for sale
notify me when|email me when|email when available|back in stock notif|notify me|join the waitlist|stock alert|ausverkauft|nicht auf lager|nicht verfügbar|nicht lieferbar
nicht vorrätig|vergriffen|derzeit nicht|momentan nicht|benachrichtigen|rupture de stock|en rupture|épuisé|indisponible|plus disponible|non disponible|m'avertir
agotado|sin stock|no disponible|sin existencias|avísame|esaurito|non disponibile|avvisami|terminato|esgotado|indisponível|sem estoque|avise-me|uitverkocht
niet op voorraad|niet leverbaar|niet beschikbaar|wyprzedane|brak w magazynie|niedostępny|powiadom|brak towaru|chwilowo niedostępny|vyprodáno|není skladem|nedostupné
není dostupn|hlídat dostupnost|vypredané|nie je skladom|slutsåld|slut i lager|ej i lager|tillfälligt slut|udsolgt|ikke på lager|utsolgt|loppuunmyyty|loppu varastosta
ei varastossa|elfogyott|nincs raktáron|nincs készleten|nem elérhető|nem rendelhető|stoc epuizat|indisponibil|nu este în stoc|tükendi|stokta yok|нет в наличии|распродано
сообщить о поступлении|закончился|немає в наявності|відсутній|在庫切れ|売り切れ|品切れ|在庫なし|缺货|缺貨|已售完|售完|补货|補貨|暫無|품절|일시품절|غير متوفر|نفدت
אזל מהמלאי|אזל|לא במלאי|läbi müüdud|ei ole laos|pole saadaval|otsas|išparduota|neturime|izpārdots|nav noliktavā|nav pieejams|изчерпан|няма наличност|rasprodano
nije dostupno|razprodano|εξαντλ|μη διαθέσιμο|hết hàng|habis|สินค้าหมด|ناموجود
"""
PREORDER = """
pre-order|preorder|pre order|coming soon|vorbestell|précommande|preventa|pre-venta|preordine|pré-venda|pre-bestel|przedsprzedaż|předobjedn|förbeställ|forudbestil|forhåndsbestill
ennakkotila|előrendel|precomand|ön sipariş|предзаказ|予約|预售|預購|예약판매
"""
BACKORDER = """
backorder|back order|back-order|available on order|special order|made to order|auf bestellung|sur commande|bajo pedido|su ordinazione|sob encomenda|op bestelling|na zamówienie
na objednávku|beställningsvara|bestillingsvare|tilaustuote|rendelésre|la comandă|под заказ|на заказ|取り寄せ|受注
"""
LIMITED = """
low stock|left in stock|limited stock|only a few|few left|almost gone|nur noch|wenige verfügbar|plus que|dernières pièces|últimas unidades|ultimi pezzi|laatste|ostatnie sztuki
poslední kus|få kvar|få igen|осталось|残りわずか|残り|仅剩|僅剩
"""
DISCONTINUED = """
discontinued|no longer sold|no longer produced|no longer manufactured|nicht mehr lieferbar|nicht mehr erhältlich|eingestellt|produit arrêté|descatalogado|fuori produzione
descontinuado|uit productie|wycofany|prodej ukončen|ukončen prodej|utgått|udgået|utgått|poistunut|снят с производства|販売終了|生産終了|停产|停產|단종
"""


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(p for line in text.split("\n") for p in line.split("|") if p))


CART_PHRASES = _phrases(CART)
STOCK_PHRASES: tuple[tuple[Stock, tuple[str, ...]], ...] = (
    (Stock.IN_STOCK, _phrases(IN_STOCK)),
    (Stock.OUT_OF_STOCK, _phrases(OUT_OF_STOCK)),
    (Stock.PREORDER, _phrases(PREORDER)),
    (Stock.BACKORDER, _phrases(BACKORDER)),
    (Stock.LIMITED_AVAILABILITY, _phrases(LIMITED)),
    (Stock.DISCONTINUED, _phrases(DISCONTINUED)),
)
# What turns "in stock" into its opposite, just before it.
NEGATION = re.compile(
    r"(?:\bnot|\bno|\bnicht|\bnon|\bpas|\bno está|\bniet|\bnie|\bnení|\bne|\bej|\bikke|\bei|\bnem|\bnu|не|нет|nincs|if|when|wenn|si|quand|pole|hetkel|n[’']est plus)\s+(?:\w+\s+)?\Z"
)
# What else a page says is not available.
NOT_THE_PRODUCT = re.compile(
    r"image|photo|picture|video|bild|immagine|imagen|imagem|foto|preview|in stores?\b|pickup|pick up|store|delivery|review|this variation|option|abholung"
)
QUANTITY = re.compile(
    r"(?:only|just|nur noch|noch|plus que|solo quedan|quedan|solo|nog|tylko|pouze|skladem|skladom|zbývá|ещё|осталось|endast|kun|enää|już|残り|仅剩|僅剩|今なら|na skladě|auf lager|"
    r"in stock|stock|lagerbestand|stan magazynowy|disponibilità|cantidad|quantity|qty available)\W{0,3}(\d{1,5})\b"
    r"|\b(\d{1,5})\s*\+?\s*(?:left|in stock|items? (?:left|in stock|available)|available|pcs in stock|auf lager|stück|verfügbar|en stock|disponibles?|op voorraad|szt|ks\b|kpl|st i lager|stk|pezzi|"
    r"remaining|шт|點|点)"
)  # fmt: skip


# Letters of a word by which a phrase is looked up before it is searched.
KEY = 4
# What may stand before the first word of a phrase.
EDGES = "([*•✓✔-–—!.,:|>"
_SPACELESS = re.compile(r"[\u0e00-\u0e7f\u2e80-\ud7ff]")


@dataclass(frozen=True, slots=True)
class Phrase:
    """What it says (None: it can be bought), and how the words begin that a text with it must have."""

    text: str
    stock: Stock | None
    keys: frozenset[str]


def _phrase(text: str, stock: Stock | None) -> Phrase:
    """Scripts without spaces have no words to look up."""
    if _SPACELESS.search(text):
        return Phrase(text, stock, frozenset())
    *whole, last = text.split()
    keys = {word[:KEY] for word in whole}
    return Phrase(
        text, stock, frozenset(keys | {last[:KEY]} if len(last) >= KEY or not whole else keys)
    )


PHRASES = tuple(
    _phrase(text, stock)
    for stock, texts in ((None, CART_PHRASES), *STOCK_PHRASES)
    for text in texts
)
SPACED = tuple(one for one in PHRASES if one.keys)
SPACELESS = tuple(one for one in PHRASES if not one.keys)


@dataclass(slots=True)
class Phrases:
    """What the short texts of a page say: (place, phrase) of buy buttons, (stock, place, phrase) of stock."""

    lowered: list[str] = field(default_factory=list)
    carts: list[tuple[int, str]] = field(default_factory=list)
    stocks: list[tuple[Stock, int, str]] = field(default_factory=list)
    # The lowered texts as one, and where each ends in it.
    joined: str = ""
    ends: list[int] = field(default_factory=list)

    def places_of(self, word: str) -> Iterator[int]:
        """The texts a word stands in."""
        position = self.joined.find(word)
        while position >= 0:
            place = bisect_right(self.ends, position)
            yield place
            position = self.joined.find(word, self.ends[place])


def find_phrases(texts: list[str]) -> Phrases:
    """Every known phrase in the short texts: only those are searched whose words the page has."""
    found = Phrases([text.lower() if len(text) <= SHORT else "" for text in texts])
    found.joined = "\n".join(found.lowered)
    found.ends = list(accumulate(len(text) + 1 for text in found.lowered))
    words = _beginnings(found.joined)
    for phrase in SPACED:
        if phrase.keys <= words:
            _add(found, phrase)
    if not found.joined.isascii() and _SPACELESS.search(found.joined):
        for phrase in SPACELESS:
            _add(found, phrase)
    found.carts.sort(key=itemgetter(0))
    found.stocks.sort(key=itemgetter(1))
    return found


def _beginnings(text: str) -> set[str]:
    words = set(text.split())
    bare = {word.lstrip(EDGES)[:KEY] for word in words if word[0] in EDGES}
    return {word[:KEY] for word in words} | bare


def _add(found: Phrases, phrase: Phrase) -> None:
    for place in found.places_of(phrase.text):
        if not _begins_a_word(found.lowered[place], phrase):
            continue
        if phrase.stock is None:
            found.carts.append((place, phrase.text))
        else:
            found.stocks.append((phrase.stock, place, phrase.text))


def _begins_a_word(text: str, phrase: Phrase) -> bool:
    """Whether the text has a word that begins as the phrase does: `stock` is not in `livestock`."""
    if not phrase.keys:
        return True
    key = phrase.text.split(" ", 1)[0][:KEY]
    return any(word[:KEY] == key or word.lstrip(EDGES)[:KEY] == key for word in text.split())
